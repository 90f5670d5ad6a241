"""The door to the index: snapshots to read from, and one transaction at a time to write with.

`Index` owns the connections. A connection serves one thread at a time and only the process that
opened it; it is kept between calls, so that the second question is quick. Readers never wait, never
create and never write; every write and every checkpoint holds the one lock beside the file."""

from __future__ import annotations

import os
import time
from _thread import allocate_lock  # a lock without `threading`, which costs a cold search 1 ms
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clawmark.model.errors import (
    ClawmarkError,
    IndexBusy,
    IndexDamaged,
    IndexFromTheFuture,
    IndexStoreError,
)
from clawmark.store.sqlite.db import (
    NOWHERE,
    Database,
    Stamp,
    files_of,
    open_nothing,
    open_reader,
    read_seal,
    stamp_of,
)
from clawmark.store.sqlite.meta import first_rows
from clawmark.store.sqlite.reader import Reader

if TYPE_CHECKING:
    from threading import Timer

    from clawmark.store.sqlite.locks import WriteLock
    from clawmark.store.sqlite.vectors.base import Residents
    from clawmark.store.sqlite.writer import Writer

__all__ = ["Index", "Mark", "Reader", "Writer"]

Mark = tuple[int, tuple[int, int, int] | None]
"""How often the files were found replaced, and which they are: see `Index.mark`."""

LOG_LIMIT_BYTES, LOG_LONG_BYTES, LOG_FULL_BYTES = (
    megabytes * 1024 * 1024 for megabytes in (4, 16, 48)
)
"""A write-ahead log longer than the first is moved into the main file once writing pauses; beyond
the second the writer that made it so long does it, and waits a moment for readers; beyond the third
nobody writes until it is done."""
LOG_SHARE, LOG_LEAST_BYTES = 32, 512 * 1024
"""While an index holds two generations it is moved sooner, when it is longer than this part of the
main file: a rebuild may take little more than twice the room of one index."""
LOG_PAUSE, LOG_RETRY_SECONDS = 0.05, 2.0
IDLE_CONNECTIONS = 8
EVICTED_AT_ONCE = 200
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
        unsearched: Sequence[str] = (),
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.path = path
        self._engine = vector_engine
        self._cache_entries = cache_entries
        self._unsearched = tuple(unsearched)
        """Sources that readers leave out; writers see every file."""
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
        """Seconds that the longest transaction of this object took, for those who measure."""

    def exists(self) -> bool:
        """Whether there is a file; it may be damaged."""
        return stamp_of(self.path) is not None

    def mark(self) -> Mark:
        """Which files this is about now, to ask later whether it still is."""
        now = files_of(self.path)
        if now is None:
            self._last = None
        return self._replaced, now

    def was_replaced(self, mark: Mark) -> bool:
        """Whether somebody deleted or replaced the files since: then what was read or written in
        between may not hold.
        """
        replaced, before = mark
        expected = self._last if before is None else before
        return self._replaced != replaced or (
            expected is not None and files_of(self.path) != expected
        )

    @contextmanager
    def reading(self, *, thorough: bool = False) -> Iterator[Reader]:
        """One snapshot: everything asked inside the block is answered from the same moment.

        A `thorough` one compares every page it reads with its checksum, even where nothing speaks
        for damage."""
        db = self._take_reader(thorough)
        try:
            db.rows("BEGIN")
            reader = Reader(db, self._residents, self._unsearched)
            try:
                yield reader
            finally:
                reader.close()
        except (IndexDamaged, IndexFromTheFuture):
            self._damaged = db.stamp
            raise
        finally:
            self._give_back(db)

    @contextmanager
    def writing(self, *, timeout: float = 10.0) -> Iterator[Writer]:
        """One transaction, committed at the end of the block and rolled back when it fails.

        `IndexBusy` when the lock is not had within `timeout` seconds (0 = do not wait).
        """
        from clawmark.store.sqlite.files import make_private_folder

        make_private_folder(os.path.dirname(self.path))
        deadline = time.monotonic() + timeout
        while True:
            with self._lock.held(max(deadline - time.monotonic(), 0.0)):
                db = self._take_writer()
                if self._has_room_in_log(db):
                    with self._transaction(db) as writer:
                        yield writer
                    self._after_write(db)
                    return
            if time.monotonic() > deadline:
                raise IndexBusy(
                    f"A reader has kept an old snapshot of the index {self.path} open for long, "
                    f"and its log is full.",
                    hint="End the process that reads it; nothing that was indexed is lost.",
                )
            time.sleep(LOG_PAUSE)

    @contextmanager
    def staging(self, *, timeout: float) -> Iterator[None]:
        """Hold the right to store a file that takes several transactions; one process at a time has
        it.

        The system releases it when its holder dies, so what a killed process left unfinished is
        replaced at once. `IndexBusy` when another process keeps it for longer than `timeout`
        seconds (0 = do not wait)."""
        from clawmark.store.sqlite.files import make_private_folder, staging_lock_path
        from clawmark.store.sqlite.locks import WriteLock

        make_private_folder(os.path.dirname(self.path))
        with self._pool:
            self._staging_lock = self._staging_lock or WriteLock(staging_lock_path(self.path))
        with self._staging_lock.held(timeout):
            yield

    @contextmanager
    def _transaction(self, db: Database) -> Iterator[Writer]:
        from clawmark.store.sqlite.writer import Writer

        began = time.monotonic()
        try:
            db.rows("BEGIN IMMEDIATE")
            writer = Writer(db, self._engine, self._clock)
            yield writer
            writer.finish()
            db.rows("COMMIT")
            writer.close()
        except BaseException as error:
            self._writer = None
            if isinstance(error, IndexDamaged):
                self._damaged = db.stamp
            # Closing rolls back, and a connection that failed once is not used again.
            _close_quietly(db)
            raise
        self._index_id = writer.index_id
        self._holds_two = writer.holds_two
        self.longest_write = max(self.longest_write, time.monotonic() - began)

    def evict(self, *, timeout: float = 10.0) -> int:
        """Shrink the cache to its limit and say how many vectors went; those in use stay, even
        beyond the limit.
        """
        with self.reading() as reader:
            rows = reader.evictable(self._cache_entries)
        gone = 0
        for start in range(0, len(rows), EVICTED_AT_ONCE):
            with self.writing(timeout=timeout) as writer:
                gone += writer.forget_cached(rows[start : start + EVICTED_AT_ONCE])
        return gone

    def check(self, *, timeout: float = 10.0) -> None:
        """Look at every page when the main file is not as the last writer left it; `IndexDamaged`
        when one is not sound.
        """
        if stamp_of(self.path) is None or read_seal(self.path):
            return
        writer = self._drop_connections()
        if writer is not None:
            _close_quietly(writer)
        # Opening a writer does it.
        with self.writing(timeout=timeout):
            return

    def set_aside(self, kind: str) -> str:
        """Move the files that were found damaged out of the way and return their new name; the next
        write begins anew.

        Nothing when another process did it first. `kind` becomes part of the name.
        """
        from clawmark.store.sqlite.files import set_aside

        damaged, self._damaged = self._damaged, None
        writer = self._drop_connections()
        if writer is not None:
            _close_quietly(writer)
        with self._lock.held(CLOSE_SECONDS):
            now = stamp_of(self.path)
            if now is None or damaged is None or now[:2] != damaged[:2]:
                return ""
            return set_aside(self.path, kind)

    @property
    def lock_waits(self) -> int:
        """How often a write had to wait for another one."""
        return self._write_lock.waits if self._write_lock is not None else 0

    def close(self) -> None:
        """Close the connections and leave a short log behind; the index can be used again and opens
        them anew.
        """
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
            # Another process is writing; it has the lock and looks after the log.
            return
        finally:
            _close_quietly(writer)

    def _drop_connections(self) -> Database | None:
        """Close the readers and give up the writer, which is returned."""
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

    # --- the log -------------------------------------------------------------------------------------------------

    def _has_room_in_log(self, db: Database) -> bool:
        """Whether the log may grow; a long one is moved into the main file first."""
        if _size_of(self.path + "-wal") <= LOG_FULL_BYTES:
            return True
        db.truncate_log(patient=True)
        self._seal()
        return _size_of(self.path + "-wal") <= LOG_FULL_BYTES

    def _after_write(self, db: Database) -> None:
        # A log or an index that was deleted meanwhile must not be written into one that took its
        # place.
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
        """Try again when the reader that was in the way has ended, even if nobody writes any more
        until then.
        """
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
            # Whoever writes looks after the log, but may meet the same reader.
            pass
        except ClawmarkError:
            return
        if self._has_long_log():
            self._truncate_later()

    def _seal(self) -> None:
        """Note what the main file looks like now, so that a change by anybody else is noticed."""
        from clawmark.store.sqlite.files import write_seal

        write_seal(self.path, self._index_id)

    @property
    def _lock(self) -> WriteLock:
        """Made with the first write: a search has no use for it."""
        if self._write_lock is None:
            from clawmark.store.sqlite.files import lock_path
            from clawmark.store.sqlite.locks import WriteLock

            with self._pool:
                self._write_lock = self._write_lock or WriteLock(lock_path(self.path))
        return self._write_lock

    # --- connections ---------------------------------------------------------------------------------------------

    def _take_reader(self, thorough: bool) -> Database:
        """An idle connection to the file that is there now, or a new one."""
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
                self._take_back()
                found = open_reader(self.path, thorough=thorough)
            return found or open_nothing(self.path, first_rows(self._engine))
        except (IndexDamaged, IndexFromTheFuture):
            self._damaged = stamp
            raise

    def _take_back(self) -> None:
        """Undo what a writer without a log left half done when it died: no reader can, and until
        then none can read.
        """
        from clawmark.store.sqlite.opening import open_writer

        with self._lock.held(CLOSE_SECONDS):
            _close_quietly(open_writer(self.path, first_rows(self._engine)))

    def _give_back(self, db: Database) -> None:
        """End the snapshot and keep the connection, unless it belongs to a forked parent, is broken
        or one too many.
        """
        try:
            if db.stamp != NOWHERE and db.pid == os.getpid():
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
            # Counted before it is closed: then the system may give its number to the file that
            # comes next.
            self._replaced += db.stamp != stamp
            self._writer = None
            _close_quietly(db)
            db = None
        if db is None:
            from clawmark.store.sqlite.opening import open_writer

            try:
                db = self._writer = open_writer(self.path, first_rows(self._engine))
            except (IndexDamaged, IndexFromTheFuture):
                self._damaged = stamp
                raise
            self._last = db.stamp[:3]
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
