"""Named tuples that cost a start-up little: `NamedTuple`, used exactly like the one of `typing`.

Python's own compiles a constructor for every class it makes, and every annotation that is a string: 36 classes took 4 ms of
the 46 of a cold search, and these take less than one. A constructor is compiled once for each number of fields, and each
class gets a copy in which the parameters have the names of its fields.

To a type checker it is `typing.NamedTuple`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple  # said twice, so that it may be imported from here
else:
    from _collections import _tuplegetter as field_at  # what makes the fields of Python's own, in C
    from functools import cache
    from types import CodeType, FunctionType

    _GLOBALS = {"new": tuple.__new__}

    @cache
    def _constructor(count: int) -> CodeType:
        names = "".join(f"_{number}, " for number in range(count))
        return eval(f"lambda cls, {names}: new(cls, ({names}))").__code__

    def _fields(body: dict[str, object]) -> tuple[str, ...]:
        if "__annotations__" in body:
            return tuple(body["__annotations__"])
        try:
            # From Python 3.14 on annotations are a function, unless `from __future__ import annotations` is there.
            from annotationlib import Format, call_annotate_function, get_annotate_from_class_namespace
        except ImportError:
            return ()
        annotate = get_annotate_from_class_namespace(body)
        return tuple(call_annotate_function(annotate, Format.FORWARDREF)) if annotate else ()

    class _Maker(type):
        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, object]) -> type:
            fields = _fields(body)
            if fields:
                defaults = {field: body[field] for field in fields if field in body}
                if tuple(defaults) != fields[len(fields) - len(defaults) :]:
                    raise TypeError(f"In {name} a field without a default comes after one with a default.")
                code = _constructor(len(fields)).replace(
                    co_varnames=("cls", *fields), co_name="__new__", co_qualname=f"{name}.__new__"
                )
                body["__new__"] = FunctionType(code, _GLOBALS, "__new__", tuple(defaults.values()))
                body.update({field: field_at(number, field) for number, field in enumerate(fields)})
                body.update(_fields=fields, __match_args__=fields, _field_defaults=defaults)
            return super().__new__(cls, name, bases, {**body, "__slots__": ()})

    class NamedTuple(tuple, metaclass=_Maker):
        """The base of every value; what it offers is what Python's own named tuples have."""

        _fields = ()

        @classmethod
        def _make(cls, values):
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"{cls.__name__} has {len(cls._fields)} fields, and got {len(made)} values.")
            return made

        def _replace(self, /, **changes):
            changed = self._make(map(changes.pop, self._fields, self))
            if changes:
                raise ValueError(f"{type(self).__name__} has no fields {', '.join(changes)}.")
            return changed

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __getnewargs__(self):
            return tuple(self)

        def __repr__(self):
            shown = [f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True)]
            return f"{type(self).__name__}({', '.join(shown)})"
