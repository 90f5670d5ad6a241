"""Text on its way through a form: browsers change line ends, and a file keeps its own."""

from __future__ import annotations

import re

from clawmark.text.line_diff import line_changes

_MARK = "\ufeff"
_LINE_END = re.compile(r"\r\n|\r|\n")


def to_form(text: str) -> str:
    """Return the text of a file as a form shows it: with plain line ends, without the byte order
    mark."""
    return _LINE_END.sub("\n", text.removeprefix(_MARK))


def can_be_in_form(text: str) -> bool:
    """Whether a browser sends a text back as it got it; it replaces NUL characters."""
    return "\0" not in text


def from_form(edited: str, original: str) -> str:
    """Return the text of a file after an edit; lines that were not changed keep their line ends,
    and new ones get the one that is most common in the file."""
    lines = to_form(edited)
    mark = _MARK if original.startswith(_MARK) else ""
    original = original.removeprefix(_MARK)
    if "\r" not in original:
        return mark + lines
    before = _LINE_END.split(original)
    ends = [*_LINE_END.findall(original), ""]
    usual = max(("\n", "\r\n", "\r"), key=ends.count)
    after = lines.split("\n")
    kept = {
        number: ends[number - one.new_start + one.old_start]
        for one in line_changes(before, after)
        if one.kind == "equal"
        for number in range(one.new_start, one.new_end)
    }
    last = len(after) - 1
    return mark + "".join(
        line if number == last else line + (kept.get(number) or usual)
        for number, line in enumerate(after)
    )
