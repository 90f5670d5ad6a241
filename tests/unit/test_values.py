"""Our named tuples do what Python's do: whoever knows those knows these."""

import copy
import inspect
import pickle
import sys
import typing
from typing import Any

import pytest

from clawmark.values import NamedTuple


class Point(NamedTuple):
    """A place."""

    x: int
    y: int = 2
    name: str = ""

    @property
    def total(self) -> int:
        return self.x + self.y


class Theirs(typing.NamedTuple):
    x: int
    y: int = 2
    name: str = ""


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1,), {}),
    ((1, 5), {}),
    ((1,), {"name": "n"}),
    ((), {"x": 1, "y": 3, "name": "a"}),
    ((), {}),
    ((1, 2, "", 4), {}),
    ((1,), {"x": 1}),
    ((1,), {"z": 1}),
]


def outcome(kind: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    try:
        return tuple(kind(*args, **named))
    except TypeError as error:
        return str(error).replace("Theirs", "Point")


@pytest.mark.parametrize(("args", "named"), CALLS)
def test_a_value_is_made_like_pythons_own(args: tuple[Any, ...], named: dict[str, Any]) -> None:
    assert outcome(Point, args, named) == outcome(Theirs, args, named)


def test_fields_are_read_by_name_and_by_place() -> None:
    point = Point(1, name="n")
    assert (point.x, point.y, point.name, point[0], point.total) == (1, 2, "n", 1, 3)
    assert point == (1, 2, "n")
    assert Point._fields == Theirs._fields
    ours, theirs = inspect.signature(Point).parameters, inspect.signature(Theirs).parameters
    assert {name: one.default for name, one in ours.items()} == {name: one.default for name, one in theirs.items()}


def test_a_value_cannot_be_changed_and_holds_nothing_else() -> None:
    point: Any = Point(1)
    with pytest.raises(AttributeError):
        point.x = 2
    with pytest.raises(AttributeError):
        point.other = 2
    assert sys.getsizeof(point) == sys.getsizeof(Theirs(1))


def test_replace_gives_a_changed_copy_and_knows_its_fields() -> None:
    point = Point(1)
    assert point._replace(y=9) == Point(1, 9)
    assert point == Point(1)
    anything: Any = point
    with pytest.raises(ValueError, match="has no fields z"):
        anything._replace(z=1)


def test_make_wants_a_value_for_every_field() -> None:
    assert Point._make([1, 2, "n"]) == Point(1, 2, "n")
    with pytest.raises(TypeError, match="has 3 fields, and got 2 values"):
        Point._make([1, 2])


def test_a_value_is_shown_with_its_names() -> None:
    assert repr(Point(1)) == "Point(x=1, y=2, name='')"
    assert Point(1)._asdict() == {"x": 1, "y": 2, "name": ""}


def test_a_value_survives_copying_and_pickling() -> None:
    point = Point(1, 7)
    for twin in (copy.copy(point), copy.deepcopy(point), pickle.loads(pickle.dumps(point))):
        assert twin == point
        assert type(twin) is Point


def test_a_pattern_takes_a_value_apart() -> None:
    match Point(1, 7):
        case Point(x, y, name):
            assert (x, y, name) == (1, 7, "")
        case _:
            pytest.fail("not matched")


def test_two_classes_with_as_many_fields_keep_their_own_names() -> None:
    class Other(NamedTuple):
        a: int
        b: int
        c: int

    assert Other(a=1, b=2, c=3).c == 3
    anything: Any = Other
    with pytest.raises(TypeError, match=r"Other.__new__\(\) got an unexpected keyword argument 'x'"):
        anything(x=1, b=2, c=3)
    assert Point(x=4).x == 4


def test_a_field_without_a_default_may_not_come_after_one_that_has_one() -> None:
    make: Any = type(Point)
    with pytest.raises(TypeError, match="In Wrong a field without a default"):
        make("Wrong", (NamedTuple,), {"__annotations__": {"a": int, "b": int}, "a": 1})


def test_the_docstring_and_the_module_are_those_of_the_class() -> None:
    assert Point.__doc__ == "A place."
    assert (Point.__module__, Point.__qualname__) == (__name__, "Point")
    assert typing.get_type_hints(Point) == {"x": int, "y": int, "name": str}
