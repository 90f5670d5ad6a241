"""Split a memory file into its entries: list items and paragraphs, with their lines and headings.

A nested list item and an indented paragraph belong to the entry above them. Headings, rules and
front matter are not entries."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from clawmark.text.chunking.days import day_in
from clawmark.text.chunking.outline import Section, join_path, outline
from clawmark.text.untrusted.origin_labels import without_comments

_ITEM = re.compile(r"(?:[-*+]|[0-9]{1,9}[.)])[ \t]")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(?:={2,}|-{2,})[ \t]*$")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")


class TextEntry(NamedTuple):
    """A list item or a paragraph, with its lines (1-based, inclusive)."""

    start_line: int
    end_line: int
    text: str
    heading: str
    """The headings above it, outermost first, joined by ` > `."""
    day: str
    """The day of the innermost dated heading, YYYY-MM-DD, or empty."""


def split_entries(text: str) -> list[TextEntry]:
    """Return the entries of a text in order; origin labels are removed from them."""
    found = outline(text)
    fences = _Fences(found.fences)
    entries, line, at = list[TextEntry](), 1, 0
    for number, section in enumerate(found.sections):
        line += text.count("\n", at, section.start)
        at = section.start
        if number == 0 and _is_front_matter(text[: section.end]):
            continue
        heading = join_path(section.path)
        day = next(filter(None, map(day_in, reversed(section.path))), "")
        entries += [
            TextEntry(start_line=first, end_line=last, text=shown, heading=heading, day=day)
            for first, last, body in _bodies(text, section, line, fences)
            if (shown := without_comments(body)).strip()
        ]
    return entries


class _Fences:
    """The spans of fenced code."""

    def __init__(self, spans: list[tuple[int, int]]) -> None:
        self.spans = spans
        self.starts = [start for start, _ in spans]

    def contain(self, at: int) -> bool:
        """Whether a position is inside a fence, not at its first character."""
        number = bisect_right(self.starts, at) - 1
        return number >= 0 and self.starts[number] < at < self.spans[number][1]


def _bodies(
    text: str, section: Section, line: int, fences: _Fences
) -> Iterator[tuple[int, int, str]]:
    """Yield the first line, the last line and the text of each entry of a section."""
    lines = text[section.start : section.end].split("\n")
    skipped = _heading_lines(lines, section)
    at, is_new, entry = section.start, True, list[str]()
    first = 0
    for number, content in enumerate([*lines, "---"]):  # the rule at the end closes the last entry
        is_fenced = number < len(lines) and fences.contain(at)
        at += len(content) + 1
        if number < skipped:
            continue
        is_end = not is_fenced and _RULE.match(content) is not None
        starts = is_new and content.strip() and not content[0].isspace()
        if entry and not is_fenced and (is_end or starts or _ITEM.match(content)):
            body = "\n".join(entry).rstrip()
            yield first, first + body.count("\n"), body
            entry = []
        is_new = not content.strip() or is_end
        if not is_end and (entry or content.strip()):
            first = first if entry else line + number
            entry.append(content)


def _heading_lines(lines: list[str], section: Section) -> int:
    """Return how many lines the heading of a section has."""
    if _HEADING.match(lines[0]):
        return 1
    return 2 if section.path and len(lines) > 1 and _UNDERLINE.match(lines[1]) else 0


def _is_front_matter(text: str) -> bool:
    text = text.rstrip()
    return text.startswith("---") and len(text) > 3 and text.endswith(("\n---", "\n..."))
