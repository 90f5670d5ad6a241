"""Cut the log of a day into passages of whole entries.

A passage depends only on the entries from its first one on. So when an entry is added, the log is
cut again from the last passage, with the same result as if all of it were cut."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from clawmark.backends.team.log_format import FIRST_LINE, render_log
from clawmark.config.schema import Chunking
from clawmark.model.documents import Chunk
from clawmark.text.chunking.chunks import chunk_text
from clawmark.text.chunking.tokens import quarter_tokens


class RenderedEntry(NamedTuple):
    """An entry as it stands in the log."""

    start_line: int
    text: str
    """Whole lines, each with its end."""


def chunk_log(day: str, entries: Sequence[RenderedEntry], chunker: Chunking) -> list[Chunk]:
    """Cut a log from the first entry of one of its passages on, or from its beginning."""
    chunks: list[Chunk] = []
    held: list[RenderedEntry] = []
    for entry in entries:
        size = quarter_tokens(entry.text)
        if held and _weight(held) + size > chunker.tokens * 4:
            chunks.append(_joined(day, held))
            held = _carried(held, min(chunker.overlap * 4, chunker.tokens * 4 - size))
        if size > chunker.tokens * 4:
            chunks += _pieces(day, entry, chunker)
            held = []
        else:
            held.append(entry)
    if held:
        chunks.append(_joined(day, held))
    return chunks


def _weight(entries: Sequence[RenderedEntry]) -> int:
    return sum(quarter_tokens(entry.text) for entry in entries)


def _carried(entries: Sequence[RenderedEntry], allowance: int) -> list[RenderedEntry]:
    """Return the last entries of a passage, which the next one repeats; never all of them."""
    first = len(entries)
    while first > 1 and _weight(entries[first - 1 :]) <= allowance:
        first -= 1
    return list(entries[first:])


def _joined(day: str, entries: Sequence[RenderedEntry]) -> Chunk:
    text = "".join(entry.text for entry in entries)
    start = entries[0].start_line
    if start == FIRST_LINE:
        start, text = 1, render_log(day, [text])
    return _chunk(day, start, text.rstrip("\n"))


def _pieces(day: str, entry: RenderedEntry, chunker: Chunking) -> list[Chunk]:
    """Cut an entry that is too long for a passage."""
    cut = chunk_text(entry.text, chunker.mode, chunker.tokens, chunker.overlap)
    return [_chunk(day, entry.start_line + one.start_line - 1, one.text) for one in cut]


def _chunk(day: str, start: int, text: str) -> Chunk:
    return Chunk(
        start_line=start,
        end_line=start + text.count("\n"),
        text=text,
        hash=sha256(text.encode()).hexdigest(),
        heading=day,
        first_day=day,
        last_day=day,
    )
