"""Remove the lines of a Markdown text that a file already contains.

A model that is asked twice what to remember says it twice. Lines are compared as entries are (see
`write_check`). A known line is kept if something new is nested below it. A fenced block or a table
is kept or removed as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from clawmark.text.entry_content import normalize_entry
from clawmark.text.untrusted.origin_labels import without_comments

_HEADING = re.compile(r"(#{1,6})\s+\S")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")


class _Unit(NamedTuple):
    """A line, a fenced block or a table."""

    rank: int
    """Nesting: 1 to 6 for headings, 10 plus the indentation for lines."""
    text: str
    key: str
    """The normalized text; empty for a blank line and for decoration."""


def new_lines(text: str, held: str) -> str:
    """Return the part of a text that is not in `held`; empty if there is none."""
    known = {unit.key for unit in _units(held)}
    units = list(_units(text))
    keep = [False] * len(units)
    above: list[int] = []
    for number, unit in enumerate(units):
        if not unit.key:
            continue
        while above and units[above[-1]].rank >= unit.rank:
            above.pop()
        if unit.rank > 6 and unit.key not in known:
            known.add(unit.key)
            for one in (*above, number):
                keep[one] = True
        above.append(number)
    kept = [unit.text for unit, is_kept in zip(units, keep, strict=True) if is_kept or not unit.key]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip("\n")


def _units(text: str) -> Iterator[_Unit]:
    fence, block = "", list[str]()
    for line in without_comments(text).split("\n"):
        opening = _FENCE.match(line)
        is_row = not fence and line.lstrip().startswith("|")
        if block and not fence and not is_row:
            yield _block(block)
            block = []
        if fence:
            block.append(line)
            if opening and opening[1].startswith(fence) and not line.strip().strip(fence[0]):
                yield _block(block)
                fence, block = "", []
        elif is_row:
            block.append(line.rstrip())
        elif opening:
            fence, block = opening[1], [line]
        else:
            yield _line(line.rstrip())
    if block:
        yield _block(block)


def _block(lines: list[str]) -> _Unit:
    return _Unit(10 + _indent(lines[0]), "\n".join(lines), " ".join(" ".join(lines).split()))


def _line(line: str) -> _Unit:
    heading = _HEADING.match(line)
    if heading:
        return _Unit(len(heading[1]), line, line.strip("# ").casefold())
    key = normalize_entry(line)
    has_words = any(map(str.isalnum, key))
    return _Unit(10 + _indent(line), line if has_words else "", key if has_words else "")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
