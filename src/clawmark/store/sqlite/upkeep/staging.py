"""Stores files too large for one short transaction.

Chunks are stored invisibly in several transactions; changing one row makes all of them visible.
Until then the old version of the file answers. The process holds the staging lock for the whole
time. What a killed process staged is replaced when the same file is staged again, and swept when it
has not grown for a minute."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from clawmark.model.documents import Chunk
from clawmark.model.errors import IndexBusy
from clawmark.model.values import FileRow
from clawmark.store.base import ChunkWords
from clawmark.store.sqlite.schema import STAGED

if TYPE_CHECKING:
    from clawmark.store.sqlite.store import SqliteStore
    from clawmark.store.sqlite.transaction import SqliteTransaction

STALE_NS = 60 * 1_000_000_000
"""A staged file that has not grown for this long belongs to a process that died."""
ATTEMPTS, PAUSE = 20, 0.05
"""How often storing a file is tried, and the seconds between two attempts."""
_STAGING = "staging"


class LargeFile(NamedTuple):
    """A file to store in several transactions."""

    row: FileRow
    chunks: Sequence[Chunk]
    words: Callable[[Sequence[Chunk]], Sequence[ChunkWords]]
    building: int
    at_once: int

    def store(self, store: SqliteStore, timeout: float) -> None:
        """Store the file, unless the index already has this version; needs the staging lock."""
        with store.snapshot() as snapshot:
            known = snapshot.files(
                [self.row.path], which="rebuilt" if self.building else "visible"
            ).get(self.row.path)
        if known is not None and known.hash == self.row.hash:
            return  # Another process has stored the same content.
        for attempts_left in reversed(range(ATTEMPTS)):
            try:
                self._stage(store, timeout)
                return
            except IndexBusy:
                # The write lock was not free in time, or another process removed the staged rows.
                if timeout <= 0 or not attempts_left:
                    raise
                time.sleep(PAUSE)

    def _stage(self, store: SqliteStore, timeout: float) -> None:
        with store.transaction(timeout=timeout) as transaction:
            key = transaction.stage_file(self.row, building=self.building)
        for start in range(0, len(self.chunks), self.at_once):
            some = self.chunks[start : start + self.at_once]
            words = self.words(some)
            with store.transaction(timeout=timeout) as transaction:
                transaction.add_chunks(key, some, words)
        with store.transaction(timeout=timeout) as transaction:
            transaction.finish_file(key)


def note(writer: SqliteTransaction, file: int) -> None:
    """Record that a staged file has grown just now."""
    writer.meta.set_facts(_STAGING, writer.meta.facts(_STAGING) | {str(file): writer.now()})


def forget(writer: SqliteTransaction, file: int) -> None:
    """Record that a file is no longer staged."""
    staged = writer.meta.facts(_STAGING)
    staged.pop(str(file), None)
    writer.meta.set_facts(_STAGING, staged)


def origin(writer: SqliteTransaction, file: int) -> tuple[str, int]:
    """Return path and generation of a staged file; raise `IndexBusy` if it was removed."""
    found: list[tuple[str, int]] = writer.db.rows(
        "SELECT path, born FROM files WHERE key = ? AND died = ?", (file, STAGED)
    )
    if not found:
        raise IndexBusy(
            "A file was indexed by another process, or changed, while it was indexed here.",
            hint="Run `clawmark index`.",
        )
    return found[0]


def give_up_stale(writer: SqliteTransaction) -> None:
    """Retire what dead processes left."""
    for file, grown in writer.meta.facts(_STAGING).items():
        if writer.now() - int(grown) >= STALE_NS:
            writer.retire("key = ?", (int(file),))
            forget(writer, int(file))
