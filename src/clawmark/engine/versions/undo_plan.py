"""Decide which write to take back and what the file is then, from the journal and the bytes.

An append that nothing followed is cut off, so that the file is what it was before, byte by byte. If
the file changed since, exactly the bytes of the entry are removed where they stand. A replaced text
comes back only while nothing else has changed the file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from clawmark.model.provenance import JournalRecord

MOST_HASHED = 1 << 30
"""How many bytes are hashed at most to find an entry in a file that has changed."""
NOT_WRITES = ("edited", "undo", "forget")
"""Kinds of records that are not taken back: the user's own edits, and what took something back."""


class PutBack(NamedTuple):
    """The content that the file has without the write; None for no file."""

    data: bytes | None


class MoveBack(NamedTuple):
    """The name that the file or folder had before it was renamed."""

    path: str


class CannotUndo(NamedTuple):
    """Why a write cannot be taken back."""

    reason: str


class NotWritten(NamedTuple):
    """The write did not change the file: it wrote the same text, or was interrupted."""


Decision: TypeAlias = PutBack | MoveBack | CannotUndo | NotWritten


def candidates(
    records: Sequence[JournalRecord], *, anyone: bool = False, write: str = ""
) -> Iterator[JournalRecord]:
    """Yield the writes that may be taken back, the newest first.

    Those are the writes of agents, imports and plugins, with `anyone` also the user's; with
    `write`, the one whose id starts with it."""
    undone = {record.undoes for record in records if record.undoes and record.done}
    for record in reversed(records):
        if record.origin.kind in NOT_WRITES or record.id in undone or record.dropped:
            continue
        if record.id.startswith(write) if write else anyone or record.origin.actor != "user":
            yield record


def interrupted(
    records: Sequence[JournalRecord],
    current: Callable[[str], bytes | None],
    exists: Callable[[str], bool],
) -> JournalRecord | None:
    """Return the last record of an undo that changed its file and was then interrupted."""
    last = next((one for one in reversed(records) if one.origin.kind == "undo"), None)
    if last is None or last.done or any(one.undoes == last.undoes and one.done for one in records):
        return None
    if last.action == "rename":
        return last if exists(last.path) and not exists(last.moved_from) else None
    return last if digest_of(current(last.path)) == last.written.digest else None


def decide(
    record: JournalRecord, current: bytes | None, find_text: Callable[[str], bytes | None]
) -> Decision:
    """Return what a file is without a write; `find_text` finds an earlier text by its hash."""
    written = record.written
    if written.entry:
        return _without_append(record, current)
    if not written.digest and not written.base:
        what = "deleted" if record.action == "delete" else "written"
        return CannotUndo(f"the journal does not say which bytes were {what}")
    if written.base == written.digest:
        return NotWritten()
    if digest_of(current) != written.digest:
        return CannotUndo("the file has changed since") if record.done else NotWritten()
    if not written.base:
        return PutBack(None)
    text = b"" if written.base == digest_of(b"") else find_text(written.base)
    if text is None:
        return CannotUndo("the text that was replaced is not kept any more")
    return PutBack(text)


def decide_rename(record: JournalRecord, exists: Callable[[str], bool]) -> Decision:
    """Return whether a file or folder can have its old name again."""
    is_there, was_replaced = exists(record.path), exists(record.moved_from)
    if not record.done and was_replaced and not is_there:
        return NotWritten()
    if not is_there:
        return CannotUndo(f"{record.path} is gone")
    if was_replaced:
        return CannotUndo(f"there is another {record.moved_from} now")
    return MoveBack(record.moved_from)


def _without_append(record: JournalRecord, current: bytes | None) -> Decision:
    written = record.written
    if current is None:
        return CannotUndo("the file is gone") if record.done else NotWritten()
    is_last = record.done and len(current) == record.after
    if is_last and digest_of(current[record.before :]) == written.digest:
        return PutBack(None if written.created else current[: record.before])
    spots = list(_spots(current, written.entry, written.size))
    if record.done and record.before + written.lead in spots:
        spots = [record.before + written.lead]  # where it was written
    if len(spots) > 1:
        return CannotUndo("the file has changed since, and has the entry several times")
    if not spots:
        return CannotUndo("the entry is not in the file any more") if record.done else NotWritten()
    return PutBack(current[: spots[0]] + current[spots[0] + written.size :])


def _spots(data: bytes, digest: str, size: int) -> Iterator[int]:
    """Yield the offsets of whole lines with this size and hash."""
    start, hashed = 0, 0
    while 0 < size <= len(data) - start:
        if data[start + size - 1] == 0x0A:
            hashed += size
            if hashed > MOST_HASHED:
                return
            if digest_of(data[start : start + size]) == digest:
                yield start
        start = data.find(b"\n", start) + 1
        if not start:
            return


def digest_of(data: bytes | None) -> str:
    """Return the hash of a content, as the journal has it; empty for no file."""
    return "" if data is None else hashlib.sha256(data).hexdigest()
