"""Render transcript messages as text and group them into chunks.

Messages arrive in order, with secrets already masked. Whole messages share a chunk up to its size;
the last ones are repeated at the start of the next chunk, up to the overlap. A message larger than
a chunk is split, each piece with its own label. The messages of the unfinished chunk are in
`open`: a new chunker that is given these first continues where the other one stopped, so a
transcript that grew need not be read again."""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

from clawmark.model.documents import Chunk
from clawmark.text.chunking.markdown import SMALLEST, chunk_markdown
from clawmark.text.chunking.tokens import quarter_tokens
from clawmark.text.transcripts.records import ROLE_NAMES, TranscriptMessage


class _Entry(NamedTuple):
    """A rendered message."""

    line: int
    day: str
    text: str
    size: int
    """In quarters of a token, including the line end."""


def _label(message: TranscriptMessage) -> str:
    """Return role and time in UTC, as `User (2026-02-24 10:03Z)`."""
    name, time = ROLE_NAMES[message.role], message.time
    return f"{name} ({time[:10]} {time[11:16]}Z)" if time else name


def render_message(message: TranscriptMessage) -> str:
    """Return a message as it is displayed and indexed; line breaks are kept."""
    return f"{_label(message)}: {message.text}"


class TranscriptChunker:
    """Groups messages into chunks."""

    def __init__(self, tokens: int, overlap: int) -> None:
        self._limit = max(SMALLEST, tokens * 4)
        self._overlap = min(max(0, overlap * 4), self._limit // 2)
        self._held = 0
        self.open: list[_Entry] = []
        """The messages of the unfinished chunk."""
        self.chunks: list[Chunk] = []
        """The finished chunks; the caller clears the list after reading it."""

    def add(self, message: TranscriptMessage) -> None:
        """Add the next message."""
        text = render_message(message)
        size = quarter_tokens(text) + 1
        if size > self._limit:
            self.close()
            self._split(message)
            return
        if self._held + size > self._limit:
            self.chunks.append(_chunk(self.open))
            self._carry(min(self._overlap, self._limit - size))
        self.open.append(_Entry(line=message.line, day=message.time[:10], text=text, size=size))
        self._held += size

    def close(self) -> None:
        """Finish the current chunk."""
        if self.open:
            self.chunks.append(_chunk(self.open))
            self.open, self._held = [], 0

    def _carry(self, allowance: int) -> None:
        """Keep the last whole messages, up to `allowance`, for the next chunk."""
        at, size = len(self.open), 0
        while at and size + self.open[at - 1].size <= allowance:
            at -= 1
            size += self.open[at].size
        self.open, self._held = self.open[at:], size

    def _split(self, message: TranscriptMessage) -> None:
        label, line, day = _label(message), message.line, message.time[:10]
        room = max(SMALLEST, self._limit - quarter_tokens(label) - 3)
        for piece in chunk_markdown(message.text, room // 4, self._overlap // 4):
            self.chunks.append(_make_chunk(line, line, f"{label}: {piece.text}", day))


def _chunk(entries: list[_Entry]) -> Chunk:
    """Build a chunk; its heading lists the days of its messages in ascending order."""
    days = " ".join(sorted({entry.day for entry in entries if entry.day}))
    text = "\n".join(entry.text for entry in entries)
    return _make_chunk(entries[0].line, entries[-1].line, text, days)


def _make_chunk(start: int, end: int, text: str, days: str) -> Chunk:
    return Chunk(
        start_line=start,
        end_line=end,
        text=text,
        hash=sha256(text.encode()).hexdigest(),
        heading=days,
        first_day=days[:10],
        last_day=days[-10:],
    )
