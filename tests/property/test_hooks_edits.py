"""Whatever a configuration looks like: an entry can be put in, is there, and taking it out gives
the text back.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clawmark.config.json5 import parse
from clawmark.hooks.jsontext import get, put, take

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
