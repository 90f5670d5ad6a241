"""How far a transcript is indexed, kept with its row, and whether the file on disk still begins
like that.

A transcript only grows. So its row remembers where the last whole line ended, which messages are in
the chunk that is not full yet, and what the file looked like up to there. From that an append is
indexed without reading what came before it. What was written without a line end is looked at again
every time the file changes."""

from __future__ import annotations

import json
import zlib
from hashlib import sha256
from typing import Any, NamedTuple

from clawmark.model.values import FileRow, FileState
from clawmark.workspace.transcripts.json_lines import BLOCK, read_at

EDGE = 4096
"""How many bytes at the beginning, and at the end of what was read, tell whether this is the same
file, only longer.
"""
UNFINISHED = -1
"""Stands in place of the size in the row of a file that is not read to its end yet: no file on disk
looks like that.
"""


class Reached(NamedTuple):
    """A place between two lines of a transcript, and what has been said up to there."""

    read: int = 0
    """Bytes of whole lines that were taken in."""
    lines: int = 0
    open: tuple[tuple[int, int, int], ...] = ()
    """The messages of the chunk that is not full yet: their lines' number, begin and end in bytes.
    """
    pieces: int = 0
    """Chunks of the next line that are stored already: a message too long for one transaction is
    stored in several.
    """
    checksum: int = 0
    said: int = 0
    """Messages up to `read`."""
    loose: int = 0
    """1 when a message without a line end follows them."""
    first: str = ""
    """The time of the first message."""
    last: str = ""
    kind: str = ""
    """Whose transcript it is: `openclaw`, `claude-code` or `codex`."""

    @property
    def rest_from(self) -> int:
        """Chunks that begin at this line or later are made anew when the file has grown."""
        return self.open[0][0] if self.open else self.lines + 1 + (self.pieces > 0)


def encode(reached: Reached) -> str:
    """The value as the row keeps it."""
    return json.dumps(reached, separators=(",", ":"))


def decode(text: str) -> Reached | None:
    """The value a row keeps; nothing when there is none that can be used."""
    try:
        values: list[Any] = json.loads(text)
        read, lines, still_open, *others = values
        places = tuple((int(line), int(start), int(end)) for line, start, end in still_open)
        return Reached(int(read), int(lines), places, *others)
    except (ValueError, TypeError):
        return None


def mark_of(fd: int, reached: Reached, *, is_finished: bool) -> str:
    """What stands for the content in place of a hash: where reading ended, and the bytes at both
    ends of it.
    """
    count = min(EDGE, reached.read)
    ends = read_at(fd, 0, count) + read_at(fd, reached.read - count, count)
    return sha256(f"{reached.read}/{reached.pieces}/{is_finished}/".encode() + ends).hexdigest()


def checksum_of(fd: int, start: int, end: int, before: int = 0) -> int:
    """The checksum of a part of the file, continued from that of the part before it."""
    while start < end and (block := read_at(fd, start, min(BLOCK, end - start))):
        before = zlib.crc32(block, before)
        start += len(block)
    return before


def continues(fd: int, known: FileRow, state: FileState) -> Reached | None:
    """Where to go on with a file that begins as it was indexed; nothing when it has to be indexed
    anew.

    A file that has only grown is believed by its two ends. One that was replaced, or changed
    without growing, is read and compared as a whole."""
    reached = decode(known.progress)
    if reached is None or state.size < reached.read:
        return None
    is_finished = known.size != UNFINISHED
    if mark_of(fd, reached, is_finished=is_finished) != known.hash:
        return None
    is_same_file = (known.inode, known.device) == state[4:]
    is_as_seen = known[3:7] == state[2:]
    if is_same_file and (is_as_seen or not is_finished or state.size > known.size):
        return reached
    return reached if checksum_of(fd, 0, reached.read) == reached.checksum else None
