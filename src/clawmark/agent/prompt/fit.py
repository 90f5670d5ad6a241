"""Truncate a Markdown text to a number of characters by whole sections, then whole entries.

A notice replaces every part that is left out. A file that grows (a log, MEMORY.md) keeps its newest
entries, other files (AGENTS.md) their first sections; both keep what comes before the first
heading. The newest entries are the last ones, unless dates in the headings show the opposite."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from clawmark.text.chunking.outline import Section, outline

_ENTRY = re.compile(r"(?:[-*+]|[0-9]{1,9}[.)])[ \t]|#{1,6}[ \t]")
_DATE = re.compile(r"\b[12][0-9]{3}-[01][0-9]-[0-3][0-9]\b")
_LEAST = 80
"""With less room, a section is left out as a whole."""


class _Span(NamedTuple):
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def fit(text: str, limit: int, name: str, *, grows: bool) -> str:
    """Return the text in at most `limit` characters; empty if not even a notice fits."""
    text = text.rstrip()
    if len(text) <= limit:
        return text
    found = outline(text)
    budget = limit
    while budget > 0:
        kept = _Cutter(text, found.sections, found.fences, grows).select(
            _Span(0, len(text)), budget
        )
        shown = _render(text, kept, name, grows)
        if len(shown) <= limit:
            return shown
        budget -= max(len(shown) - limit, 32)  # make room for the notices
    notice = _notice(text, _Span(0, len(text)), name, grows)
    return notice if len(notice) <= limit else ""


class _Cutter:
    """Selects the spans to keep, in order and without overlap."""

    def __init__(
        self, text: str, sections: list[Section], fences: list[tuple[int, int]], grows: bool
    ) -> None:
        self.text = text
        self.sections = sections
        self.fences = fences
        self.grows = grows

    def select(self, span: _Span, budget: int) -> list[_Span]:
        if span.size <= budget:
            return [span]
        head, parts = self._parts(span)
        kept = (
            [head] if head.size <= budget else [self._beginning(head, budget)] if not parts else []
        )
        left = budget - sum(part.size for part in kept)
        for part in reversed(parts) if self._newest_last(parts) else parts:
            if part.size > left:
                kept += self.select(part, left) if left >= _LEAST else []
                break
            kept.append(part)
            left -= part.size
        return sorted(part for part in kept if part.size)

    def _parts(self, span: _Span) -> tuple[_Span, list[_Span]]:
        """Split a span into its head, which is kept, and the parts that may be left out."""
        inside = [section for section in self.sections if span.start <= section.start < span.end]
        if len(inside) < 2:
            return self._entries(span)
        depth = min(len(section.path) for section in inside[1:])
        first = inside[0]
        has_head = len(first.path) < depth or not first.path
        starts = [section.start for section in inside[has_head:] if len(section.path) <= depth]
        return _Span(span.start, starts[0]), _between(starts, span.end)

    def _entries(self, span: _Span) -> tuple[_Span, list[_Span]]:
        """Split a section without subsections into its heading, and list items and paragraphs."""
        starts = []
        at, is_blank = span.start, True
        while at < span.end:
            line_end = self.text.find("\n", at, span.end)
            line_end = span.end if line_end < 0 else line_end + 1
            line = self.text[at:line_end]
            is_start = _ENTRY.match(line) or (is_blank and line.strip() and not line[0].isspace())
            if is_start and not self._is_fenced(at):
                starts.append(at)
            is_blank = not line.strip()
            at = line_end
        heading = starts and self.text.startswith("#", starts[0])
        head_end = (starts[1] if len(starts) > 1 else span.end) if heading else span.start
        starts = starts[1:] if heading else starts
        if len(starts) < 2 and head_end == span.start:
            return span, []
        return _Span(span.start, head_end), _between(starts, span.end)

    def _is_fenced(self, at: int) -> bool:
        number = bisect_left(self.fences, (at, 0)) - 1
        return number >= 0 and at < self.fences[number][1]

    def _beginning(self, span: _Span, budget: int) -> _Span:
        """Return the start of a span without parts, cut at a line end, a blank, or anywhere."""
        end = span.start + budget
        for mark in ("\n", " "):
            cut = self.text.rfind(mark, span.start + budget // 2, end)
            if cut > 0:
                return _Span(span.start, cut + 1)
        return _Span(span.start, end)

    def _newest_last(self, parts: Sequence[_Span]) -> bool:
        if not self.grows:
            return False
        firsts = [self.text[part.start : part.end].split("\n", 1)[0] for part in parts]
        dates = [found[0] for found in map(_DATE.search, firsts) if found]
        return len(dates) < 2 or dates[0] <= dates[-1]


def _between(starts: list[int], end: int) -> list[_Span]:
    return [_Span(start, after) for start, after in zip(starts, [*starts, end][1:], strict=True)]


def _render(text: str, kept: Sequence[_Span], name: str, grows: bool) -> str:
    """Join the kept parts with a notice in every gap."""
    pieces = [""]
    at = 0
    for span in (*kept, _Span(len(text), len(text))):
        if text[at : span.start].strip():
            pieces += [_notice(text, _Span(at, span.start), name, grows), ""]
        pieces[-1] += text[span.start : span.end]
        at = span.end
    return "\n\n".join(piece.strip("\n") for piece in pieces if piece.strip("\n"))


def _notice(text: str, gap: _Span, name: str, grows: bool) -> str:
    """Say which lines are missing and how to read them; files that grow are memory files."""
    first = text.count("\n", 0, gap.start) + 1
    last = text.count("\n", 0, len(text[: gap.end].rstrip())) + 1
    lines = f"line {first}" if first >= last else f"lines {first}-{last}"
    size = len(text[gap.start : gap.end].strip())
    way = "memory_get reads them" if grows else "open the file to read them"
    return f"[… {lines} of {name} left out here, {size:,} characters; {way} …]"
