"""Invisible characters are escaped, and the escapes can be reversed."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.text.untrusted.invisible_characters import (
    escape,
    has_hidden,
    unescape,
    without_hidden,
)

ANY_TEXT = st.text(
    st.characters(exclude_categories=[]) | st.sampled_from("\\u{}0123456789abcdef\u200b\U000e0041")
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text\twith tabs\nand lines", "plain text\twith tabs\nand lines"),
        ("a\u200bb", r"a\u{200b}b"),
        ("\x1b[31m", r"\u{1b}[31m"),
        ("a\r\nb", "a\\u{d}\nb"),
        ("\u2028", r"\u{2028}"),
        (chr(0xE0073), r"\u{e0073}"),
        (r"C:\users \u{200b} \\", r"C:\users \u{5c}u{200b} \\"),
        ("\udcff", r"\u{dcff}"),
    ],
)
def test_invisible_characters_are_escaped(text: str, shown: str) -> None:
    assert escape(text) == shown
    assert unescape(shown) == text


def test_joiners_are_kept_on_request() -> None:
    assert escape("\U0001f469\u200d\U0001f4bb", joiners=False) == "\U0001f469\u200d\U0001f4bb"
    assert escape("\u200b\u200d", joiners=False) == "\\u{200b}\u200d"


@given(ANY_TEXT)
def test_unescape_reverses_escape_for_every_text(text: str) -> None:
    assert unescape(escape(text)) == text


@given(ANY_TEXT)
def test_escaped_text_is_printable_and_keeps_its_lines(text: str) -> None:
    shown = escape(text)
    assert shown.count("\n") == text.count("\n")
    assert shown.splitlines() == shown.split("\n") or shown.endswith("\n") or not shown
    left = {unicodedata.category(letter) for letter in shown if letter not in "\n\t"}
    assert not left & {"Cc", "Cs", "Zl", "Zp"}
    assert not any(
        "\u200b" <= letter <= "\u200f" or "\U000e0000" <= letter <= "\U000e0fff" for letter in shown
    )


def test_joiners_and_soft_hyphens_do_not_count_as_hidden() -> None:
    assert has_hidden("a\u200bb") and has_hidden("\U000e0041") and has_hidden("\x1b")
    assert not has_hidden("soft\u00adhyphen \u200d\u200c \\u{41} \r\n")
    assert without_hidden("a\u200bb\\u{41}") == "ab\\u{41}"


def test_an_invalid_escape_is_left_unchanged() -> None:
    assert unescape(r"\u{ffffff} \u{} \u{zz}") == r"\u{ffffff} \u{} \u{zz}"
