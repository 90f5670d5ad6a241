"""The door to the index: snapshots to read from, and one transaction at a time to write with.

`Index` owns the connections. A connection serves one thread at a time and only the process that opened it; it is kept
between calls, so that the second question is quick. Readers never wait, never create and never write; every write and
every checkpoint holds the one lock beside the file.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock  # a lock without `threading`, which costs a cold search 1 ms
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clawmark.errors import ClawmarkError
from clawmark.index.db import Database, open_nothing, open_reader, open_writer, stamp_of
from clawmark.index.meta import first_rows
from clawmark.index.reader import Reader

if TYPE_CHECKING:
    from clawmark.index.locks import WriteLock
    from clawmark.index.vectors import Residents
    from clawmark.index.writer import Writer

__all__ = ["Index", "Reader", "Writer"]

LOG_LIMIT_BYTES = 16 * 1024 * 1024
"""A write-ahead log beyond this is moved into the main file by the writer that made it so long."""
IDLE_CONNECTIONS = 8
CLOSE_SECONDS = 10.0
"""How long closing waits for a thread that is still writing."""


class Index:
    """The derived database of one workspace; making this object opens nothing."""

    def __init__(
        self,
        path: str,
        *,
        vector_engine: str = "blocks",
        cache_entries: int = 50_000,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.path = path
        self._engine = vector_engine
        self._cache_entries = cache_entries
        self._clock = clock
        self._write_lock: WriteLock | None = None
        self._pool = allocate_lock()
        self._idle: list[Database] = []
        self._writer: Database | None = None
        self._residents: Residents = {}

    def exists(self) -> bool:
        """Whether there is a file; it may be damaged."""
        return stamp_of(self.path) is not None

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """One snapshot: everything asked inside the block is answered from the same moment."""
        db = self._take_reader()
        try:
            db.rows("BEGIN")
            reader = Reader(db, self._residents)
            try:
                yield reader
            finally:
                reader.close()
        finally:
            self._give_back(db)

    @contextmanager
    def writing(self, *, timeout: float = 10.0) -> Iterator[Writer]:
        """One transaction, committed at the end of the block and rolled back when it fails.

        `IndexBusy` when the lock is not had within `timeout` seconds (0 = do not wait).
        """
        from clawmark.index.places import make_private_folder
        from clawmark.index.writer import Writer

        make_private_folder(os.path.dirname(self.path))
        with self._lock.held(timeout):
            db = self._take_writer()
            try:
                db.rows("BEGIN IMMEDIATE")
                writer = Writer(db, self._engine, self._cache_entries, self._clock)
                yield writer
                writer.finish()
                db.rows("COMMIT")
                writer.close()
            except BaseException:
                self._writer = None
                # Closing rolls back, and a connection that failed once is not used again.
                _close_quietly(db)
                raise
            if _size_of(self.path + "-wal") > LOG_LIMIT_BYTES:
                db.truncate_log()

    def close(self) -> None:
        """Close the connections and leave a short log behind; the index can be used again and opens them anew."""
        with self._pool:
            idle, self._idle = self._idle, []
        for db in idle:
            _close_quietly(db)
        self._residents.clear()
        if self._write_lock is None:
            return
        with self._lock.held_by_thread(CLOSE_SECONDS):
            writer, self._writer = self._writer, None
        if writer is None:
            return
        try:
            if writer.pid == os.getpid() and writer.stamp == stamp_of(self.path) and _size_of(self.path + "-wal"):
                with self._lock.held(0):
                    writer.truncate_log()
        except ClawmarkError:
            # Another process is writing; it has the lock and looks after the log.
            return
        finally:
            _close_quietly(writer)

    @property
    def _lock(self) -> WriteLock:
        """Made with the first write: a search has no use for it."""
        if self._write_lock is None:
            from clawmark.index.locks import WriteLock
            from clawmark.index.places import lock_path

            with self._pool:
                self._write_lock = self._write_lock or WriteLock(lock_path(self.path))
        return self._write_lock

    # --- connections ---------------------------------------------------------------------------------------------

    def _take_reader(self) -> Database:
        """An idle connection to the file that is there now, or a new one."""
        stamp = stamp_of(self.path)
        while self._idle:
            with self._pool:
                db = self._idle.pop() if self._idle else None
            if db is None:
                break
            if db.pid == os.getpid() and db.stamp == stamp:
                return db
            _close_quietly(db)
        return open_reader(self.path) or open_nothing(self.path, first_rows(self._engine))

    def _give_back(self, db: Database) -> None:
        """End the snapshot and keep the connection, unless it belongs to a forked parent, is broken or one too many."""
        try:
            if db.stamp != (0, 0) and db.pid == os.getpid():
                db.rows("ROLLBACK")
                with self._pool:
                    if len(self._idle) < IDLE_CONNECTIONS:
                        self._idle.append(db)
                        return
        except ClawmarkError:
            _close_quietly(db)
            return
        _close_quietly(db)

    def _take_writer(self) -> Database:
        db = self._writer
        if db is not None and (db.pid != os.getpid() or db.stamp != stamp_of(self.path)):
            self._writer = None
            _close_quietly(db)
            db = None
        if db is None:
            db = self._writer = open_writer(self.path, first_rows(self._engine))
        return db


def _close_quietly(db: Database) -> None:
    """Close a connection when what matters has been said already."""
    try:
        db.close()
    except ClawmarkError:
        return


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
