"""The JSON5 reader: what it reads, and where it says a mistake is."""

from __future__ import annotations

import math

import pytest

from clawmark.config.json5 import MAX_DEPTH, Json5Error, parse, show_path


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", {}),
        ("[]", []),
        ("null", None),
        ("{a: 1, 'b': 2, \"c\": 3,}", {"a": 1, "b": 2, "c": 3}),
        ("[1, 2,]", [1, 2]),
        ("// one\n/* two\n */ {a: true} // three", {"a": True}),
        ("{$_x9: false}", {"$_x9": False}),
        ("{ключ: 1}", {"ключ": 1}),
        ("+1", 1),
        ("-0x1F", -31),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("-Infinity", -math.inf),
        ("'it\\'s'", "it's"),
        ('"a\\\nb"', "ab"),
        ('"\\x41\\u00e9\\n\\v\\0"', "Aé\n\v\0"),
        ('"\\ud83d\\ude00"', "😀"),
        ("\ufeff{}", {}),
    ],
)
def test_json5_is_read(text: str, value: object) -> None:
    assert parse(text).value == value


def test_nan_is_a_number() -> None:
    assert math.isnan(float(str(parse("NaN").value)))


@pytest.mark.parametrize(
    ("text", "line", "column", "path", "reason"),
    [
        ('{"agents":{', 1, 12, "agents", "the end of the file"),
        ("{\n  a: {\n    b: tru\n  }\n}", 3, 8, "a.b", "expected a value"),
        ("{}{}", 1, 3, "", "after the end"),
        ("{a: [1, 2, {b: }]}", 1, 16, "a[2].b", "expected a value"),
        ("{a 1}", 1, 4, "a", 'expected ":"'),
        ("{a: 1 b: 2}", 1, 7, "", 'expected "," or "}"'),
        ("{a: 'x\n'}", 1, 7, "a", "does not end on its line"),
        ("{a: 1} /* x", 1, 8, "", "a comment does not end"),
        ("{a: 010}", 1, 5, "a", "not a number"),
        ("{a: '\\xZZ'}", 1, 6, "a", "hexadecimal"),
        ("{\0}", 1, 2, "", "U+0000"),
        ("{a: 1,\n a: 2}", 2, 2, "", "duplicate key a"),
        ("{,}", 1, 2, "", "expected a key"),
    ],
)
def test_an_error_has_line_column_and_key(
    text: str, line: int, column: int, path: str, reason: str
) -> None:
    with pytest.raises(Json5Error) as caught:
        parse(text)
    error = caught.value
    assert (error.line, error.column, show_path(error.path)) == (line, column, path)
    assert reason in error.reason


def test_nesting_is_limited_without_a_recursion_error() -> None:
    assert parse("[" * MAX_DEPTH + "]" * MAX_DEPTH).value is not None
    with pytest.raises(Json5Error, match="levels deep"):
        parse("[" * 50_000 + "]" * 50_000)


def test_every_key_has_its_line() -> None:
    lines = parse("{\n  a: {\n    b: 1,\n    c: [\n      {d: 2}]}}").lines
    assert lines == {("a",): 2, ("a", "b"): 3, ("a", "c"): 4, ("a", "c", 0, "d"): 5}


def test_a_long_path_is_shortened() -> None:
    assert len(show_path(tuple(range(1000)))) < 200
