"""The line chunker of OpenClaw 2026.9 (its chunking version 5), byte for byte.

Lines, text and hash of each chunk equal those in an OpenClaw index, so that its vectors can be
reused. Differences from the earlier chunker in `lines`: no chunk exceeds its limit, because the
overlap is cut to fit; a surrogate pair is never divided; rare scripts weigh more; and the curated
files MEMORY.md and USER.md are cut at every heading and list entry. Comments that set a trigger, an
importance or a project are removed before cutting."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256

from clawmark.model.documents import Chunk
from clawmark.text.chunking.tokens import utf16_length

CURATED_FILES = ("MEMORY.md", "USER.md")
"""Paths in the workspace of the files that are cut entry by entry."""

_SPACE = "\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
"""White space as JavaScript defines it, for a character class."""
_BLANK = re.compile(f"[{_SPACE}]*")
_HEADING = re.compile(rf"#{{1,6}}(?:[{_SPACE}]|\Z)")
_ANNOTATION = re.compile(rf"(?ai)<!--[{_SPACE}]*(?:trigger|importance|project)[{_SPACE}]*:")
_LINE_BREAK = re.compile(r"[\r\n]")
_SPACES = re.compile("[ \t]+")
_LINE_ENDS = ("", "\r", "\n", "\u2028", "\u2029")

# Extra weight of characters in addition to their UTF-16 units.
_EXTRA = (
    (3, re.compile("[\u00b7\u3000-\u319f\u4e00-\u9fa5\uac00-\ud7af\uff01-\uff60]")),
    (
        11,
        re.compile(
            "[\u1100-\u11ff\u2e80-\u2fff\u31a0-\u4dff\u9fa6-\ua4ff"
            "\ua700-\ua707\ua960-\ua97f\ud7b0-\ud7ff\uf900-\ufaff]"
        ),
    ),
    (
        7,
        re.compile(
            "[\u02c7\u02c9-\u02cb\u02d9\u02ea\u02eb\u0305\u0323"
            "\ufe10-\ufe4f\uff61-\uffdc\uffe0-\uffe6]"
        ),
    ),
    (10, re.compile("[\U0001d360-\U0001d371]")),
    (
        14,
        re.compile(
            "[\U00016fe0-\U00016fff\U0001aff0-\U0001b16f\U0001f200-\U0001f2ff"
            "\U00020000-\U0002fa1f\U00030000-\U0003347f]"
        ),
    ),
)

Segment = tuple[int, int, str]
"""Line number, weight, text."""


def chunk_entries(text: str, tokens: int, overlap: int, *, per_entry: bool = False) -> list[Chunk]:
    """Cut a text into chunks of at most `tokens`; `per_entry` also at headings and list entries."""
    limit = max(32, tokens * 4)
    carried = max(0, overlap * 4)
    chunks: list[Chunk] = []
    buffer: list[Segment] = []
    held = 0
    for number, line in enumerate(without_annotations(text).split("\n"), 1):
        if per_entry and buffer and _begins_entry(line):
            chunks.append(_chunk(buffer))
            buffer, held = [], 0
        for segment in _segments(line, limit):
            weight = weigh(segment)
            if buffer and held + weight + 1 > limit:
                chunks.append(_chunk(buffer))
                buffer = _overlap(buffer, min(carried, limit - weight - 1))
                held = sum(part[1] + 1 for part in buffer)
            buffer.append((number, weight, segment))
            held += weight + 1
    chunks.append(_chunk(buffer))
    return [chunk for chunk in chunks if not _BLANK.fullmatch(chunk.text)]


def without_annotations(text: str) -> str:
    """Remove comments such as `<!-- importance: 8 -->` and, if there were any, trailing blanks."""
    parts: list[str] = []
    kept_until = end = line_end = 0
    search_from = 0
    # The next end of a comment and of a line are remembered, so that a file of unfinished comments
    # is read only once.
    while found := _ANNOTATION.search(text, search_from):
        search_from = found.end()
        if end < search_from:
            end = text.find("-->", search_from)
            if end < 0:
                break
        if line_end < search_from:
            line_break = _LINE_BREAK.search(text, search_from)
            line_end = line_break.start() if line_break else len(text)
        if end <= line_end:
            parts.append(text[kept_until : found.start()])
            kept_until = search_from = end + 3
    if not parts:
        return text
    stripped = "".join([*parts, text[kept_until:]])
    return _SPACES.sub(
        lambda run: "" if stripped[run.end() : run.end() + 1] in _LINE_ENDS else run[0], stripped
    )


def weigh(text: str) -> int:
    """Return the estimated length in quarter tokens: UTF-16 units, more for CJK and rare signs."""
    if text.isascii():
        return len(text)
    return utf16_length(text) + sum(extra * len(pattern.findall(text)) for extra, pattern in _EXTRA)


def _begins_entry(line: str) -> bool:
    return line.startswith("- ") or _HEADING.match(line) is not None


def _segments(line: str, limit: int) -> Iterator[str]:
    """Yield the pieces of a line that weigh at most `limit` each."""
    if len(line) * 16 <= limit or (len(line) <= limit and line.isascii()):
        yield line
        return
    start = 0
    while start < len(line):
        end = _end_of_units(line, start, limit)
        piece = line[start:end]
        if weigh(piece) > limit:
            yield from _by_weight(piece, limit)
        else:
            yield piece
        start = end


def _end_of_units(text: str, start: int, units: int) -> int:
    """Return the end of the longest piece from `start` with at most `units` UTF-16 units."""
    if text.isascii():
        return min(start + units, len(text))
    end, held = start, 0
    while end < len(text):
        held += 2 if text[end] > "\uffff" else 1
        if held > units:
            break
        end += 1
    return end


def _by_weight(text: str, limit: int) -> Iterator[str]:
    start, held = 0, 0
    for at, character in enumerate(text):
        weight = weigh(character)
        if held + weight > limit:
            yield text[start:at]
            start, held = at, 0
        held += weight
    yield text[start:]


def _overlap(buffer: list[Segment], window: int) -> list[Segment]:
    """Return the last segments that fit into the window, at least the end of the last one."""
    kept: list[Segment] = []
    held = 0
    for number, weight, segment in reversed(buffer):
        left = window - held
        if weight + 1 > left:
            if not kept and (tail := _tail(segment, left - 1)):
                kept.append((number, weigh(tail), tail))
            break
        held += weight + 1
        kept.append((number, weight, segment))
        if held >= window:
            break
    return kept[::-1]


def _tail(text: str, limit: int) -> str:
    """Return the longest end of a text that weighs at most `limit`."""
    start, held = len(text), 0
    while start:
        held += weigh(text[start - 1])
        if held > limit:
            break
        start -= 1
    return text[start:]


def _chunk(buffer: list[Segment]) -> Chunk:
    text = "\n".join([part[2] for part in buffer])
    return Chunk(
        start_line=buffer[0][0],
        end_line=buffer[-1][0],
        text=text,
        hash=sha256(text.encode()).hexdigest(),
    )
