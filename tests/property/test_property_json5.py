"""Our JSON5 reader against the two others: the standard library's and the json5 package."""

from __future__ import annotations

import json

import json5
from hypothesis import given, settings
from hypothesis import strategies as st

from clawmark.config.json5 import Json5Error, parse

# The json5 package writes NUL and a digit as `\\00`, which is no JSON5; nobody has NUL in a
# configuration.
TEXT = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False)
    | st.text(TEXT, max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(TEXT, max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
MARKS = list("{}[]:,'\"\\ \n1.e+-x0aN")
WORDS = ["true", "null", "//", "/*", "*/", "key", "NaN", "Infinity", "\\u0041"]
PIECES = st.lists(st.sampled_from([*MARKS, *WORDS]), max_size=12)


@given(VALUES)
def test_what_json_writes_is_read_back(value: object) -> None:
    assert parse(json.dumps(value)).value == json.loads(json.dumps(value))


@given(VALUES)
def test_what_json5_writes_is_read_back(value: object) -> None:
    # In ASCII the json5 package reads its own surrogate pairs back as two letters.
    text = json5.dumps(value, trailing_commas=True, indent=1, ensure_ascii=False)
    assert repr(parse(text).value) == repr(json5.loads(text))


@given(PIECES.map("".join))
@settings(max_examples=300)
def test_any_text_is_a_value_or_a_json5_error(text: str) -> None:
    try:
        ours: object = parse(text).value
    except Json5Error as error:
        assert error.line >= 1 and error.column >= 1 and error.reason
        return
    assert repr(ours) == repr(json5.loads(text))
