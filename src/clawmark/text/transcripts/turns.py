"""Messages of a conversation put together to chunks, and written so that a person can read them.

In: what was said, in order, with secrets already masked. Out: chunks whose lines are those of the
transcript. Whole messages share a chunk up to its size, and the last ones begin the next chunk
again as far as the overlap goes. A message that is larger than a chunk is cut by itself, each piece
under its speaker's name. What has not filled a chunk yet is `open`: a packer that is given these
messages first goes on exactly where another one stopped, so that a transcript that grew need not be
read again."""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

from clawmark.model.documents import Chunk
from clawmark.text.chunking.markdown import SMALLEST, chunk_markdown
from clawmark.text.chunking.tokens import quarter_tokens
from clawmark.text.transcripts.records import Said

_NAMES = {"user": "User", "assistant": "Assistant"}


class Turn(NamedTuple):
    """A message as it stands in a chunk."""

    line: int
    day: str
    text: str
    size: int
    """In quarters of a token, with the line end."""


def label(said: Said) -> str:
    """Who speaks, and when: `User (2026-02-24 10:03Z)`; times are UTC."""
    name = _NAMES[said.speaker]
    return f"{name} ({said.time[:10]} {said.time[11:16]}Z)" if said.time else name


def rendered(said: Said) -> str:
    """A message as it is read and indexed; its own line breaks stay."""
    return f"{label(said)}: {said.text}"


class Packer:
    """Fills one chunk after another with messages."""

    def __init__(self, tokens: int, overlap: int) -> None:
        self._limit = max(SMALLEST, tokens * 4)
        self._overlap = min(max(0, overlap * 4), self._limit // 2)
        self._held = 0
        self.open: list[Turn] = []
        """The messages of the chunk that is being filled."""
        self.chunks: list[Chunk] = []
        """The chunks that are full; whoever takes them away clears the list."""

    def add(self, said: Said) -> None:
        """Take in the next message."""
        text = rendered(said)
        turn = Turn(line=said.line, day=said.time[:10], text=text, size=quarter_tokens(text) + 1)
        if turn.size > self._limit:
            self.close()
            self._split(said)
            return
        if self._held + turn.size > self._limit:
            self.chunks.append(_chunk(self.open))
            self._carry(min(self._overlap, self._limit - turn.size))
        self.open.append(turn)
        self._held += turn.size

    def close(self) -> None:
        """End the chunk that is being filled."""
        if self.open:
            self.chunks.append(_chunk(self.open))
            self.open, self._held = [], 0

    def _carry(self, allowance: int) -> None:
        """Keep the last whole messages for the next chunk; never all of them, since all and the
        next do not fit.
        """
        at, size = len(self.open), 0
        while at and size + self.open[at - 1].size <= allowance:
            at -= 1
            size += self.open[at].size
        self.open, self._held = self.open[at:], size

    def _split(self, said: Said) -> None:
        name = label(said)
        room = max(SMALLEST, self._limit - quarter_tokens(name) - 3)
        for piece in chunk_markdown(said.text, room // 4, self._overlap // 4):
            self.chunks.append(_made(said.line, said.line, f"{name}: {piece.text}", said.time[:10]))


def _chunk(turns: list[Turn]) -> Chunk:
    """A chunk whose heading names the days it is about, the last one last."""
    days = " ".join(sorted({turn.day for turn in turns if turn.day}))
    return _made(turns[0].line, turns[-1].line, "\n".join(turn.text for turn in turns), days)


def _made(start: int, end: int, text: str, days: str) -> Chunk:
    return Chunk(
        start_line=start,
        end_line=end,
        text=text,
        hash=sha256(text.encode()).hexdigest(),
        heading=days,
        first_day=days[:10],
        last_day=days[-10:],
    )
