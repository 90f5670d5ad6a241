"""Differences between two texts as lines that a page shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from clawmark.text.line_diff import grouped_changes

CONTEXT = 3
MOST_LINES = 1500
"""A longer difference is cut."""
LONGEST_LINE = 2000
"""In characters; longer lines are cut."""


class DiffLine(NamedTuple):
    """A line of a diff."""

    sign: str
    """`+` added, `-` removed, a blank for context, and `@` for lines that are left out."""
    old: int | None
    new: int | None
    """Its numbers in both texts, counted from 1."""
    text: str


def diff_texts(before: str, after: str) -> tuple[DiffLine, ...]:
    """Compare two texts line by line."""
    lines = tuple(line._replace(text=_cut(line.text)) for line in _lines(before, after))
    if len(lines) <= MOST_LINES:
        return lines
    left = f"… {len(lines) - MOST_LINES:,} more lines"
    return (*lines[:MOST_LINES], _left_out(left))


def _lines(before: str, after: str) -> Iterator[DiffLine]:
    old, new = _split(before), _split(after)
    for number, group in enumerate(grouped_changes(old, new, CONTEXT)):
        if number:
            yield _left_out("…")
        for kind, old_start, old_end, new_start, new_end in group:
            if kind == "equal":
                for offset, text in enumerate(old[old_start:old_end]):
                    yield DiffLine(
                        sign=" ",
                        old=old_start + offset + 1,
                        new=new_start + offset + 1,
                        text=text,
                    )
                continue
            yield from _numbered("-", old[old_start:old_end], old_start + 1)
            yield from _numbered("+", new[new_start:new_end], new_start + 1)


def _left_out(text: str) -> DiffLine:
    return DiffLine(sign="@", old=None, new=None, text=text)


def _numbered(sign: str, lines: Iterable[str], first: int) -> Iterator[DiffLine]:
    for number, text in enumerate(lines, first):
        is_new = sign == "+"
        yield DiffLine(
            sign=sign,
            old=None if is_new else number,
            new=number if is_new else None,
            text=text,
        )


def _cut(text: str) -> str:
    if len(text) <= LONGEST_LINE:
        return text
    return f"{text[:LONGEST_LINE]}… ({len(text) - LONGEST_LINE:,} more characters)"


def _split(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def decoded(data: bytes | None) -> str:
    """Return the content of a file for a comparison; empty for no file."""
    return (data or b"").decode("utf-8", "replace").replace("\r\n", "\n")
