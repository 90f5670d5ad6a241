"""Whatever a configuration looks like: an entry can be put in, is there, and taking it out gives
the text back.
"""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from clawmark.config.json5 import parse
from clawmark.hooks.jsontext import get, has, put, set_value, take, unset

NAMES = st.sampled_from(["mcpServers", "hooks", "clawmark", "a", "b b", "ключ", 'q"uote'])
BLANKS = st.sampled_from(["", " ", "\n", "\r\n\t", "  // a note\n", "/* { */", "\n    "])
ATOMS = st.sampled_from(["1", "-2.5", "true", "null", '"text"', '"a \\" } ] , //"', "'single'"])


@st.composite
def objects(draw: st.DrawFn, depth: int = 3) -> str:
    """An object as somebody might have typed it."""
    keys = draw(st.lists(NAMES, max_size=3, unique=True))
    members = []
    for key in keys:
        value = (
            draw(st.one_of(ATOMS, objects(depth - 1), lists(depth - 1))) if depth else draw(ATOMS)
        )
        shown = '"' + key.replace('"', '\\"') + '"'
        members.append(f"{draw(BLANKS)}{shown}{draw(BLANKS)}:{draw(BLANKS)}{value}{draw(BLANKS)}")
    tail = draw(st.sampled_from(["", ","])) if members else ""
    return "{" + ",".join(members) + tail + draw(BLANKS) + "}"


@st.composite
def lists(draw: st.DrawFn, depth: int) -> str:
    items = draw(st.lists(st.one_of(ATOMS, objects(depth - 1)) if depth > 0 else ATOMS, max_size=3))
    return (
        "[" + ",".join(f"{draw(BLANKS)}{item}{draw(BLANKS)}" for item in items) + draw(BLANKS) + "]"
    )


def fits(value: object, path: tuple[str, ...]) -> bool:
    """Whether an entry can be put there: objects on the way, and nothing at its place."""
    for key in path[:-1]:
        if not isinstance(value, dict):
            return False
        if key not in value:
            return True
        value = value[key]
    return isinstance(value, dict) and path[-1] not in value


@given(
    text=st.one_of(objects(), st.sampled_from(["", "\n", "\ufeff"])), before=BLANKS, after=BLANKS
)
def test_an_entry_goes_in_and_out_and_leaves_no_trace(text: str, before: str, after: str) -> None:
    text = before + text + after if text.strip("\n\ufeff") else text
    known = parse(text).value if text.strip("\n\ufeff") else {}
    for path in (("mcpServers", "clawmark"), ("mcp", "servers", "clawmark"), ("clawmark",)):
        if not fits(known, path):
            continue
        entry = {"command": "clawmark", "args": ["mcp"]}
        done = put(text, path, entry, "file")
        assert get(done.text, path, "file") == entry
        assert done.text.replace(done.piece, "", 1) == text
        cut = take(done.text, path, "file", done.made)
        assert (parse(cut).value if cut.strip("\n\ufeff") else {}) == known


@given(text=objects())
def test_an_item_of_a_list_goes_in_and_out_too(text: str) -> None:
    known = parse(text).value
    assert isinstance(known, dict)
    hooks = known.get("hooks", {})
    if not isinstance(hooks, dict) or not isinstance(hooks.get("a", []), list):
        return
    done = put(text, ("hooks", "a"), {"ours": 1}, "file", as_item=True)
    assert get(done.text, ("hooks", "a"), "file") == [{"ours": 1}, *hooks.get("a", [])]
    assert done.text.replace(done.piece, "", 1) == text
    cut = take(done.text, ("hooks", "a"), "file", done.made, item=lambda item: item == {"ours": 1})
    assert parse(cut).value == known


PATHS = st.lists(st.sampled_from(["a", "hooks", "b b", "ключ"]), min_size=1, max_size=3).map(tuple)
VALUES = st.sampled_from([1, True, "text", ["x", "y"], {"k": 1}])


def leaves_of(value: object, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], object]:
    if not isinstance(value, dict) or not value:
        return {path: value}
    return {
        inner: leaf
        for key, below in value.items()
        for inner, leaf in leaves_of(below, (*path, key)).items()
    }


def comments_in(text: str) -> int:
    return text.count("// a note") + text.count("/* { */")


@given(text=objects(), path=PATHS, value=VALUES)
def test_a_value_is_set_and_everything_else_stays(
    text: str, path: tuple[str, ...], value: object
) -> None:
    known = parse(text).value
    inside: object = known
    for key in path[:-1]:
        inside = inside.get(key, {}) if isinstance(inside, dict) else None
    if not isinstance(inside, dict):
        return
    changed = set_value(text, path, value, "file")
    assert get(changed, path, "file") == value
    if path[-1] not in inside:
        assert comments_in(changed) == comments_in(text)
    others = {at: leaf for at, leaf in leaves_of(known).items() if at[: len(path)] != path}
    now = leaves_of(parse(changed).value)
    for at, leaf in others.items():
        assert leaf in ({}, known) or now[at] == leaf  # an empty object may have been filled


@given(text=objects(), path=PATHS)
@example(text='{"b b":1,"c":1,  // a note\n"a":1}', path=("a",))
@example(text='{// a note\r\n"a":1}', path=("a",))
def test_a_value_is_unset_and_other_values_and_comments_stay(
    text: str, path: tuple[str, ...]
) -> None:
    known = parse(text).value
    changed = unset(text, path, "file")
    assert not has(changed, path, "file")
    before = {at: leaf for at, leaf in leaves_of(known).items() if at[: len(path)] != path}
    after = leaves_of(parse(changed).value)
    for at, leaf in before.items():
        assert leaf == {} or after[at] == leaf
    if not has(text, path, "file"):
        assert changed == text


@given(text=objects(), path=PATHS)
def test_set_and_unset_leave_no_trace(text: str, path: tuple[str, ...]) -> None:
    known = parse(text).value
    if not fits(known, path):
        return
    restored = unset(set_value(text, path, 1, "file"), path, "file")
    assert leaves_without_empty(parse(restored).value) == leaves_without_empty(known)


def leaves_without_empty(value: object) -> dict[tuple[str, ...], object]:
    return {at: leaf for at, leaf in leaves_of(value).items() if leaf != {}}
