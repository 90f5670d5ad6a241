"""What a text says that a file does not hold yet: Markdown in, the same Markdown without its
repetitions out.

A model that is asked twice what to remember says it twice. Lines are compared without their
bullets, blanks, comments and case. A line that is known is left out, unless something new hangs
below it: a heading or an item stays when one of its own does. A fenced block and a table are known
or new as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from clawmark.text.untrusted.origin_labels import without_comments

_BULLETS = re.compile(r"\s*(?:(?:[-*+]|[0-9]{1,3}[.)]|\[[ xX]\])\s+)*")
_HEADING = re.compile(r"(#{1,6})\s+\S")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")


class _Unit(NamedTuple):
    """A line, a fenced block or a table."""

    rank: int
    """Below what it hangs: 1 to 6 for headings, 10 and more for lines, by how far they are
    indented.
    """
    text: str
    word: str
    """What it says, for the comparison; empty for a blank line and for decoration."""


def fresh_lines(text: str, held: str) -> str:
    """The part of a text that is not in `held`; empty when all of it is."""
    known = {unit.word for unit in _units(held)}
    units = list(_units(text))
    keep = [False] * len(units)
    above: list[int] = []
    for number, unit in enumerate(units):
        if not unit.word:
            continue
        while above and units[above[-1]].rank >= unit.rank:
            above.pop()
        if unit.rank > 6 and unit.word not in known:
            known.add(unit.word)
            for one in (*above, number):
                keep[one] = True
        above.append(number)
    kept = [
        unit.text for unit, is_kept in zip(units, keep, strict=True) if is_kept or not unit.word
    ]
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
    said = " ".join(_BULLETS.sub("", line, count=1).casefold().split()).rstrip(".")
    is_something = any(map(str.isalnum, said))
    return _Unit(10 + _indent(line), line if is_something else "", said if is_something else "")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
