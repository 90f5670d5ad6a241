"""How far a transcript is indexed, stored with its row.

A transcript only grows. Its row holds where the last complete line ended, which messages are in the
incomplete chunk, and a checksum of the file up to there. So an append is indexed without reading
what came before it. Text without a line end is read again whenever the file changes.

A sync that the watcher requests leaves a transcript alone until it has grown by enough."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from clawmark.config.schema import SessionDeltas
from clawmark.model.errors import WorkspaceError
from clawmark.model.values import FileRow, FileState, SyncPlan
from clawmark.workspace.transcripts.files import TranscriptFiles
from clawmark.workspace.transcripts.json_lines import BLOCK, count_lines, read_at

EDGE = 4096
"""How many bytes at the start and at the end of what was read identify the file."""
UNFINISHED = -1
"""Replaces the size in the row of a file that is not read to its end: no file has this size."""


class Reached(NamedTuple):
    """A position between two lines of a transcript, and what was read up to there."""

    read: int = 0
    """Bytes of complete lines that were read."""
    lines: int = 0
    open: tuple[tuple[int, int, int], ...] = ()
    """The messages of the incomplete chunk: line number, start and end in bytes."""
    pieces: int = 0
    """Chunks of the next line that are already stored: a very long message takes several
    transactions."""
    checksum: int = 0
    said: int = 0
    """Messages up to `read`."""
    loose: int = 0
    """1 if a message without a line end follows."""
    first: str = ""
    """The time of the first message."""
    last: str = ""
    kind: str = ""
    """The format of the transcript: `openclaw`, `claude-code` or `codex`."""

    @property
    def rest_from(self) -> int:
        """Chunks from this line on are replaced when the file has grown."""
        return self.open[0][0] if self.open else self.lines + 1 + (self.pieces > 0)


def encode(reached: Reached) -> str:
    """Encode the value for the row."""
    return json.dumps(reached, separators=(",", ":"))


def decode(text: str) -> Reached | None:
    """Decode the value of a row; None if it cannot be used."""
    try:
        values: list[Any] = json.loads(text)
        read, lines, still_open, *others = values
        places = tuple((int(line), int(start), int(end)) for line, start, end in still_open)
        return Reached._make((int(read), int(lines), places, *others))
    except (ValueError, TypeError):
        return None


def mark_of(fd: int, reached: Reached, *, is_finished: bool) -> str:
    """Return what identifies the content in place of a hash: the position, and the bytes at both
    ends of what was read."""
    count = min(EDGE, reached.read)
    ends = read_at(fd, 0, count) + read_at(fd, reached.read - count, count)
    return sha256(f"{reached.read}/{reached.pieces}/{is_finished}/".encode() + ends).hexdigest()


def checksum_of(fd: int, start: int, end: int, before: int = 0) -> int:
    """Continue a checksum over a part of the file."""
    while start < end and (block := read_at(fd, start, min(BLOCK, end - start))):
        before = zlib.crc32(block, before)
        start += len(block)
    return before


def continues(fd: int, known: FileRow, state: FileState) -> Reached | None:
    """Return where to continue if the file still starts with what was indexed; None to index it
    again.

    For a file that has only grown, both ends are compared. One that was replaced, or changed
    without growing, is compared as a whole."""
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


def is_due(grown_bytes: int, new_messages: int, settings: SessionDeltas) -> bool:
    """Return whether the growth is enough; a limit of 0 or less accepts any growth."""
    if grown_bytes <= 0:
        return False
    return grown_bytes >= settings.delta_bytes or new_messages >= settings.delta_messages


def leave_small_growth(
    plan: SyncPlan,
    indexed: Mapping[str, FileRow],
    sessions: TranscriptFiles,
    settings: SessionDeltas,
) -> tuple[SyncPlan, int]:
    """Return the plan without transcripts that grew by little, and how many those are."""

    def is_enough(state: FileState) -> bool:
        return state.source != "sessions" or _has_enough(
            state, indexed.get(state.path), sessions, settings
        )

    kept = plan._replace(
        add=tuple(filter(is_enough, plan.add)), check=tuple(filter(is_enough, plan.check))
    )
    return kept, plan.due - kept.due


def _has_enough(
    state: FileState, known: FileRow | None, sessions: TranscriptFiles, settings: SessionDeltas
) -> bool:
    reached = decode(known.progress) if known is not None else None
    read = reached.read if reached is not None else 0
    grown = state.size - read
    if grown < 0 or is_due(grown, 0, settings):
        return True  # It was replaced, or grew by enough bytes.
    try:
        with sessions.open(state.path) as opened:
            return is_due(grown, count_lines(opened.fd, read, state.size), settings)
    except (OSError, WorkspaceError):
        return True  # The sync itself reports what is wrong with it.
