"""The SQLite implementation of `IndexStore`: snapshots to read from, one transaction at a time.

`SqliteStore` owns the connections. A connection serves one thread at a time and only the process
that opened it; it is kept between calls, so that the second query is fast. Readers never wait,
create or write; every write and every checkpoint holds the write lock next to the file."""

from __future__ import annotations

import os
import time
from _thread import allocate_lock  # a lock without `threading`, which costs a cold search 1 ms
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from clawmark.model.errors import (
    ClawmarkError,
    IndexBusy,
    IndexDamaged,
    IndexFromTheFuture,
    IndexStoreError,
)
from clawmark.model.values import Mark
from clawmark.store.sqlite import files
from clawmark.store.sqlite.db import (
    Database,
    open_empty,
    open_reader,
)
from clawmark.store.sqlite.file_stamps import (
    NO_STAMP,
    Stamp,
    files_of,
    read_seal,
    stamp_of,
)
from clawmark.store.sqlite.locks import WriteLock
from clawmark.store.sqlite.meta import first_rows, read_meta
from clawmark.store.sqlite.opening import open_writer
from clawmark.store.sqlite.running import SyncRecord
from clawmark.store.sqlite.snapshot import SqliteSnapshot

if TYPE_CHECKING:
    from threading import Timer

    from clawmark.model.documents import Chunk
    from clawmark.model.values import FileRow
    from clawmark.store.base import ChunkWords
    from clawmark.store.sqlite.locks import WriteLock
    from clawmark.store.sqlite.transaction import SqliteTransaction
    from clawmark.store.sqlite.vectors.base import Residents

LOG_LIMIT_BYTES, LOG_LONG_BYTES, LOG_FULL_BYTES = (
    megabytes * 1024 * 1024 for megabytes in (4, 16, 48)
)
"""A write-ahead log longer than the first limit is checkpointed once writing pauses; beyond the
second the writer itself does it and waits briefly for readers; beyond the third all writing waits
for it."""
LOG_SHARE, LOG_LEAST_BYTES = 32, 512 * 1024
"""While an index holds two generations the log is checkpointed when it is longer than this fraction
of the main file: a rebuild should take little more than twice the space of one index."""
LOG_PAUSE, LOG_RETRY_SECONDS = 0.05, 2.0
IDLE_CONNECTIONS = 8
EVICTED_AT_ONCE = 200
STAGING_SECONDS = 600.0
"""How long to wait for another process that stores a large file; 64 MB take about a minute."""
CLOSE_SECONDS = 10.0
"""How long closing waits for a thread that is still writing."""


class SqliteStore:
    """The index of one agent in an SQLite file; see `IndexStore` for the methods."""

    def __init__(
        self,
        path: str,
        *,
        vector_engine: str = "blocks",
        cache_entries: int = 50_000,
        unsearched: Sequence[str] = (),
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.path = path
        self._engine = vector_engine
        self._cache_entries = cache_entries
        self._unsearched = tuple(unsearched)
        """Sources that snapshots leave out; transactions see every file."""
        self._clock = clock
        self._write_lock: WriteLock | None = None
        self._staging_lock: WriteLock | None = None
        self._pool = allocate_lock()
        self._idle: list[Database] = []
        self._writer: Database | None = None
        self._timer: Timer | None = None
        self._residents: Residents = {}
        self._damaged: Stamp | None = None
        self._index_id = ""
        self._holds_two = False
        self._last: tuple[int, int, int] | None = None
        """The file and the log that were written last."""
        self._replaced = 0
        self.longest_write = 0.0
        """Seconds that the longest transaction of this object took, for benchmarks."""

    # --- the protocol -----------------------------------------------------------------------------

    def mark(self) -> Mark:
        now = files_of(self.path)
        if now is None:
            self._last = None
        return self._replaced, now

    def was_replaced(self, mark: Mark | None) -> bool:
        """Return whether the files were deleted or replaced since the mark (None: since opening).

        If so, what was read or written in between may not be valid."""
        replaced, before = mark or (0, None)
        expected = self._last if before is None else before
        return self._replaced != replaced or (
            expected is not None and files_of(self.path) != expected
        )

    @contextmanager
    def snapshot(self, *, thorough: bool = False) -> Iterator[SqliteSnapshot]:
        """Open a snapshot; everything read inside the block is as of the same moment.

        With `thorough`, the checksum of every page that is read is verified, even if there is no
        sign of damage."""
        db = self._take_reader(thorough)
        try:
            db.begin()
            snapshot = SqliteSnapshot(db, self._residents, self._unsearched, read_meta(db))
            try:
                yield snapshot
            finally:
                snapshot.close()
        except (IndexDamaged, IndexFromTheFuture):
            self._damaged = db.stamp
            raise
        finally:
            self._return_reader(db)

    @contextmanager
    def transaction(self, *, timeout: float = 10.0) -> Iterator[SqliteTransaction]:
        files.make_private_folder(os.path.dirname(self.path))
        deadline = time.monotonic() + timeout
        while True:
            with self._lock.held(max(deadline - time.monotonic(), 0.0)):
                db = self._take_writer()
                if self._has_room_in_log(db):
                    with self._transaction(db) as transaction:
                        yield transaction
                    self._after_write(db)
                    return
            if time.monotonic() > deadline:
                raise IndexBusy(
                    f"A reader has kept an old snapshot of the index {self.path} open for long, "
                    f"and its log is full.",
                    hint="End the process that reads it; nothing that was indexed is lost.",
                )
            time.sleep(LOG_PAUSE)

    def put_large_file(
        self,
        row: FileRow,
        chunks: Sequence[Chunk],
        words: Callable[[Sequence[Chunk]], Sequence[ChunkWords]],
        *,
        building: int = 0,
        timeout: float = 10.0,
        at_once: int = 300,
    ) -> None:
        # Imported late: only a writer needs it.
        from clawmark.store.sqlite.upkeep.staging import LargeFile

        file = LargeFile(row=row, chunks=chunks, words=words, building=building, at_once=at_once)
        with self.staging(timeout=STAGING_SECONDS if timeout > 0 else 0.0):
            file.store(self, timeout)

    def begin_rebuild(
        self,
        identity: dict[str, Any],
        *,
        timeout: float = 10.0,
        cancelled: Callable[[], bool] | None = None,
    ) -> int:
        """Start a rebuild, or continue one with the same identity, and return its number.

        What an earlier one left is removed first, or every rebuild that is killed while it cleans
        up would leave more behind. Return 0 if `cancelled` returned true."""
        while cancelled is None or not cancelled():
            self.tidy(timeout=timeout, cancelled=cancelled)
            with self.transaction(timeout=timeout) as transaction:
                building = transaction.begin_rebuild(identity)
            if building:
                return building
        return 0

    def tidy(
        self,
        *,
        timeout: float = 10.0,
        cancelled: Callable[[], bool] | None = None,
        force: bool = False,
    ) -> None:
        """Sweep if there is enough to remove, or in any case with `force`.

        The transactions are short, so that other writers do not wait long."""
        with self.snapshot() as snapshot:
            is_due = force or snapshot.state().is_worth_sweeping
        while is_due and (cancelled is None or not cancelled()):
            with self.transaction(timeout=timeout) as transaction:
                is_due = transaction.sweep() > 0

    def check(self, *, timeout: float = 10.0) -> None:
        """Check every page if the main file is not as the last writer left it.

        Raise `IndexDamaged` if one is not intact."""
        if stamp_of(self.path) is None or read_seal(self.path):
            return
        writer = self._drop_connections()
        if writer is not None:
            _close_quietly(writer)
        # Opening a writer checks the pages.
        with self.transaction(timeout=timeout):
            return

    def recover_vectors(self, *, timeout: float = 10.0) -> int:
        with self.snapshot() as reader:
            name = reader.facts("healed").get("aside")
        if not isinstance(name, str) or not name:
            return 0
        # Imported late: only an index that replaces a damaged one needs it.
        from clawmark.store.sqlite.upkeep.salvage import salvage

        return salvage(self, name, timeout=timeout)

    def trim_cache(self, *, timeout: float = 10.0) -> int:
        with self.snapshot() as snapshot:
            rows = snapshot.evictable(self._cache_entries)
        gone = 0
        for start in range(0, len(rows), EVICTED_AT_ONCE):
            with self.transaction(timeout=timeout) as transaction:
                gone += transaction.forget_cached(rows[start : start + EVICTED_AT_ONCE])
        return gone

    @contextmanager
    def record_sync(self, facts: dict[str, object]) -> Iterator[Callable[..., None]]:
        with SyncRecord(self.path, facts) as record:
            yield record.note

    @property
    def lock_waits(self) -> int:
        return self._write_lock.waits if self._write_lock is not None else 0

    def close(self) -> None:
        writer = self._drop_connections()
        if writer is None:
            return
        try:
            if (
                writer.pid == os.getpid()
                and writer.stamp == stamp_of(self.path)
                and _size_of(self.path + "-wal")
            ):
                with self._lock.held(0):
                    writer.truncate_log()
                    self._seal()
        except ClawmarkError:
            return  # Another process is writing; it holds the lock and takes care of the log.
        finally:
            _close_quietly(writer)

    # --- for SQLite only -----------------------------------------------------------------------

    @contextmanager
    def staging(self, *, timeout: float) -> Iterator[None]:
        """Hold the lock for storing a large file.

        The system releases it if its holder dies, so what a killed process left unfinished is
        replaced at once."""
        files.make_private_folder(os.path.dirname(self.path))
        with self._pool:
            self._staging_lock = self._staging_lock or WriteLock(files.staging_lock_path(self.path))
        with self._staging_lock.held(timeout):
            yield

    def exists(self) -> bool:
        return os.path.exists(self.path)

    def check_vectors(self) -> None:
        # Only `doctor --probe` needs it.
        from clawmark.store.sqlite.vectors.engine_check import check_engine

        check_engine(self._engine)

    def erase_deleted(self, *, timeout: float = 10.0) -> int:
        # Only `forget` needs it.
        from clawmark.store.sqlite.upkeep import erasing

        return erasing.erase_deleted(self, timeout=timeout)

    def set_aside(self, kind: str) -> str:
        """Rename the files that were found damaged and return the new name.

        The next write creates a new index. Return an empty string if another process did it first.
        `kind` becomes part of the name."""
        damaged, self._damaged = self._damaged, None
        writer = self._drop_connections()
        if writer is not None:
            _close_quietly(writer)
        with self._lock.held(CLOSE_SECONDS):
            now = stamp_of(self.path)
            if now is None or damaged is None or now[:2] != damaged[:2]:
                return ""
            return files.set_aside(self.path, kind)

    # --- transactions and connections -------------------------------------------------------------

    @contextmanager
    def _transaction(self, db: Database) -> Iterator[SqliteTransaction]:
        # Imported late: a search does not write.
        from clawmark.store.sqlite.transaction import SqliteTransaction

        began = time.monotonic()
        try:
            db.rows("BEGIN IMMEDIATE")
            writer = SqliteTransaction(db, self._engine, self._clock)
            yield writer
            writer.finish()
            db.rows("COMMIT")
            writer.close()
        except BaseException as error:  # also on KeyboardInterrupt
            self._writer = None
            if isinstance(error, IndexDamaged):
                self._damaged = db.stamp
            # Closing rolls back; a connection that failed once is not used again.
            _close_quietly(db)
            raise
        self._index_id = writer.index_id
        self._holds_two = writer.holds_two
        self.longest_write = max(self.longest_write, time.monotonic() - began)

    def _drop_connections(self) -> Database | None:
        """Close the readers; return the writer, which no longer belongs to this object."""
        with self._pool:
            idle, self._idle = self._idle, []
        for db in idle:
            _close_quietly(db)
        self._residents.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._write_lock is None:
            return None
        with self._lock.held_by_thread(CLOSE_SECONDS):
            writer, self._writer = self._writer, None
        return writer

    # --- the log ----------------------------------------------------------------------------------

    def _has_room_in_log(self, db: Database) -> bool:
        """Return whether the log may grow; a long one is checkpointed first."""
        if _size_of(self.path + "-wal") <= LOG_FULL_BYTES:
            return True
        db.truncate_log(patient=True)
        self._seal()
        return _size_of(self.path + "-wal") <= LOG_FULL_BYTES

    def _after_write(self, db: Database) -> None:
        # The log of an index that was deleted must not be written into the one that replaced it.
        if self._has_long_log() and db.stamp == stamp_of(self.path):
            is_long = _size_of(self.path + "-wal") > LOG_LONG_BYTES
            if is_long or self._holds_two:
                db.truncate_log(patient=is_long)
            if self._has_long_log():
                self._truncate_later()
        self._seal()

    def _has_long_log(self) -> bool:
        limit = LOG_LIMIT_BYTES
        if self._holds_two:
            limit = min(limit, max(LOG_LEAST_BYTES, _size_of(self.path) // LOG_SHARE))
        return _size_of(self.path + "-wal") > limit

    def _truncate_later(self) -> None:
        """Retry the checkpoint later, even if nothing is written until then."""
        # Imported late: only a writer needs it.
        import threading

        if self._timer is None:
            self._timer = threading.Timer(LOG_RETRY_SECONDS, self._truncate_now)
            self._timer.daemon = True
            self._timer.start()

    def _truncate_now(self) -> None:
        self._timer = None
        try:
            with self._lock.held(0):
                db = self._writer
                if db is None or db.pid != os.getpid() or db.stamp != stamp_of(self.path):
                    return
                db.truncate_log(patient=True)
                self._seal()
        except IndexBusy:
            pass  # The process that writes does it, but the same reader may prevent that too.
        except ClawmarkError:
            return
        if self._has_long_log():
            self._truncate_later()

    def _seal(self) -> None:
        """Record what the main file looks like now, to notice changes from outside."""
        files.write_seal(self.path, self._index_id)

    @property
    def _lock(self) -> WriteLock:
        """The write lock, created with the first write: a search does not need it."""
        if self._write_lock is None:
            with self._pool:
                self._write_lock = self._write_lock or WriteLock(files.lock_path(self.path))
        return self._write_lock

    def _take_reader(self, thorough: bool) -> Database:
        """Return an idle connection to the current file, or a new one."""
        stamp = stamp_of(self.path)
        while self._idle and not thorough:
            with self._pool:
                db = self._idle.pop() if self._idle else None
            if db is None:
                break
            if db.pid == os.getpid() and db.stamp == stamp:
                return db
            self._replaced += db.stamp != stamp
            _close_quietly(db)
        try:
            try:
                found = open_reader(self.path, thorough=thorough)
            except IndexStoreError:
                if not os.path.exists(self.path + "-journal"):
                    raise
                self._roll_back_journal()
                found = open_reader(self.path, thorough=thorough)
            return found or open_empty(self.path, first_rows(self._engine))
        except (IndexDamaged, IndexFromTheFuture):
            self._damaged = stamp
            raise

    def _roll_back_journal(self) -> None:
        """Roll back what a killed writer without a log left; readers cannot read until then."""
        with self._lock.held(CLOSE_SECONDS):
            _close_quietly(open_writer(self.path, first_rows(self._engine)))

    def _return_reader(self, db: Database) -> None:
        """End the snapshot and keep the connection for the next one, if it is still usable."""
        try:
            if db.stamp != NO_STAMP and db.pid == os.getpid():
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
        stamp = stamp_of(self.path)
        db = self._writer
        if db is not None and (db.pid != os.getpid() or db.stamp != stamp):
            # Counted before closing: afterwards the system may reuse the inode for the next file.
            self._replaced += db.stamp != stamp
            self._writer = None
            _close_quietly(db)
            db = None
        if db is None:
            try:
                db = self._writer = open_writer(self.path, first_rows(self._engine))
            except (IndexDamaged, IndexFromTheFuture):
                self._damaged = stamp
                raise
            self._last = db.stamp[:3]
        return db


def _close_quietly(db: Database) -> None:
    """Close a connection and ignore errors."""
    try:
        db.close()
    except ClawmarkError:
        return


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
