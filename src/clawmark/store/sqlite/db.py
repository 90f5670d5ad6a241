"""Opens the database for reading and runs statements; `opening` opens it for writing.

A reader's connection is read-only; it never creates or migrates. A writer's connection is opened
under the write lock and checkpoints only on request. Both are set up to limit what a hostile file
can do: no trusted schema, no ATTACH, no extensions, bounded lengths, and a time limit for every
query.

Every page has a checksum, by SQLite's own checksum VFS. A writer verifies each page it reads. A
reader does so only if the main file is not as the last writer left it, which the seal shows."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import apsw

from clawmark.model.errors import ClawmarkError, IndexDamaged
from clawmark.store.sqlite.file_stamps import (
    NO_STAMP,
    Stamp,
    check_files,
    is_absent,
    main_file,
    read_seal,
    stamp_of,
)
from clawmark.store.sqlite.schema import (
    APPLICATION_ID,
    FIX_HINT,
    QUERY_SECONDS,
    check_objects,
    check_version,
    create_statements,
)

if TYPE_CHECKING:
    from clawmark.store.sqlite.keywords.counts import KeptCounts

SQLITE_VERSION = apsw.sqlite_lib_version()

Bindings = Sequence[Any]

BUSY_MS = 10_000
LOG_BUSY_MS = 50
"""How long a checkpoint waits for readers when the log is long."""
CHECKING_VFS, CHECKSUM_BYTES = "cksmvfs", 8
MOST_ATTEMPTS = 5
"""How often opening is retried if the index is deleted in the meantime."""
STEPS_BETWEEN_LOOKS = 20_000
"""SQLite instructions between two checks of the time limit; a fraction of a millisecond."""

# Invalid UTF-8, and buffers longer than their blob, raise Python's own errors.
DRIVER_ERRORS = (apsw.Error, ValueError, OverflowError)

# The precautions that sqlite.org recommends for files that may have been tampered with.
_CAUTIOUS = (
    "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; "
    "PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0;"
)
_NAMES = "SELECT key, value FROM meta WHERE key IN ('schema_version', 'index_id')"
_LIMITS = {
    apsw.SQLITE_LIMIT_LENGTH: 16 * 1024 * 1024,
    apsw.SQLITE_LIMIT_SQL_LENGTH: 1024 * 1024,
    apsw.SQLITE_LIMIT_EXPR_DEPTH: 100,
    apsw.SQLITE_LIMIT_VARIABLE_NUMBER: 999,
    apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1000,
    apsw.SQLITE_LIMIT_ATTACHED: 0,
}
_DENIED = frozenset(
    (
        apsw.SQLITE_ATTACH,
        apsw.SQLITE_DETACH,
        apsw.SQLITE_CREATE_TRIGGER,
        apsw.SQLITE_CREATE_TEMP_TRIGGER,
        apsw.SQLITE_CREATE_VIEW,
        apsw.SQLITE_CREATE_TEMP_VIEW,
    )
)


class Database:
    """One connection, for one thread at a time and only for the process that opened it."""

    def __init__(
        self, connection: apsw.Connection, path: str, stamp: Stamp, seconds: float | None
    ) -> None:
        self.path = path
        self.stamp = stamp
        """Which files were opened, to notice if the path leads to others."""
        self.pid = os.getpid()
        self.extensions: set[str] = set()
        self.kept_counts: KeptCounts = {}
        """How common words are, as far as searches have counted it."""
        self._functions: set[str] = set()
        self._connection = connection
        self._seconds = seconds
        self._version = -1
        self.remembered: dict[str, Any] = {}
        """What was read of the database since it last changed."""
        self._deadline = [float("inf")]
        if seconds is not None:
            deadline = self._deadline
            connection.set_progress_handler(
                lambda: time.monotonic() > deadline[0], STEPS_BETWEEN_LOOKS
            )

    def rows(self, sql: str, bindings: Bindings = (), *, patient: bool = False) -> list[Any]:
        """Run one statement and return its rows; a reader's has a time limit, unless it is
        `patient`."""
        self._start(patient=patient)
        try:
            return self._connection.execute(sql, bindings).fetchall()
        except DRIVER_ERRORS as error:
            raise translate(error, self.path) from error

    def begin(self) -> None:
        """Begin a snapshot, and forget what was remembered if the database has changed since.

        SQLite counts the changes by other connections; a reader's own makes none."""
        self.rows("BEGIN")
        version = self.rows("PRAGMA data_version")[0][0]
        if version != self._version:
            self._version, self.remembered = version, {}

    def many(self, sql: str, bindings: Iterable[Bindings]) -> list[Any]:
        """Run one statement for each of the bindings and return all rows."""
        self._start()
        try:
            return self._connection.executemany(sql, bindings).fetchall()
        except DRIVER_ERRORS as error:
            raise translate(error, self.path) from error

    def read_blobs(self, wanted: Sequence[tuple[int, memoryview]]) -> Iterator[memoryview]:
        """Fill buffers from the start of packed parts (row, buffer), without copying, and yield
        each one when it is filled; several parts may share a buffer."""
        if not wanted:
            return
        try:
            with self._connection.blob_open(
                "main", "chunks_vec", "data", wanted[0][0], False
            ) as blob:
                for row, into in wanted:
                    # Moving a handle to another row is five times as fast as opening one.
                    blob.reopen(row)
                    blob.read_into(into)
                    yield into
        except DRIVER_ERRORS as error:
            raise translate(error, self.path) from error

    def write_blob(self, row: int, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Overwrite bytes of a packed part in place: pairs of offset and bytes."""
        try:
            with self._connection.blob_open("main", "chunks_vec", "data", row, True) as blob:
                for offset, piece in pieces:
                    blob.seek(offset)
                    blob.write(piece)
        except DRIVER_ERRORS as error:
            raise translate(error, self.path) from error

    def total_changes(self) -> int:
        """Return how many rows were changed since this connection was opened."""
        return self._connection.total_changes()

    def last_key(self) -> int:
        """Return the row number of the last insert."""
        return self._connection.last_insert_rowid()

    def load_extension(self, file: str) -> None:
        """Load an SQLite extension; loading is enabled only during this call."""
        try:
            self._connection.enable_load_extension(True)
            try:
                self._connection.load_extension(file)
            finally:
                self._connection.enable_load_extension(False)
        except apsw.Error as error:
            raise translate(error, self.path) from error
        self.extensions.add(os.path.basename(file))

    def add_fts5_function(self, function: Callable[..., Any]) -> None:
        """Register an auxiliary function of FTS5 by its name, unless the connection has it."""
        name = function.__name__
        if name not in self._functions:
            self._connection.register_fts5_function(name, function)
            self._functions.add(name)

    def pages_read(self) -> int:
        """Return how many pages this connection has asked for, from memory or from the disk."""
        hits, misses = apsw.SQLITE_DBSTATUS_CACHE_HIT, apsw.SQLITE_DBSTATUS_CACHE_MISS
        return self._connection.status(hits)[0] + self._connection.status(misses)[0]

    def truncate_log(self, *, patient: bool = False) -> None:
        """Checkpoint and empty the write-ahead log, as far as readers allow; `patient` waits for
        them briefly."""
        try:
            self._connection.set_busy_timeout(LOG_BUSY_MS if patient else 0)
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except (apsw.BusyError, apsw.LockedError):
            # A reader still uses the old pages; the next checkpoint includes them.
            return
        except apsw.Error as error:
            raise translate(error, self.path) from error
        finally:
            self._connection.set_busy_timeout(BUSY_MS)

    def close(self) -> None:
        """Close the connection, unless it belongs to the parent of a forked process."""
        if self.pid != os.getpid():
            # Closing it would release the parent's locks, so the object must never be freed here.
            import ctypes

            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
            return
        try:
            self._connection.close()
        except apsw.Error as error:
            raise translate(error, self.path) from error

    def _start(self, *, patient: bool = False) -> None:
        if self._seconds is not None:
            self._deadline[0] = float("inf") if patient else time.monotonic() + self._seconds


def translate(error: Exception, path: str) -> ClawmarkError:
    """Return our error for the driver's; imported only when something failed."""
    # Imported late: only needed after a fork or an error.
    from clawmark.store.sqlite import faults

    return faults.translate(error, path)


def as_list(numbers: Iterable[int]) -> str:
    """Format row numbers as one binding, for `IN (SELECT value FROM json_each(?))`."""
    return f"[{','.join(map(str, numbers))}]"


def open_reader(path: str, *, thorough: bool = False) -> Database | None:
    """Open a read-only connection; return None if there is no index.

    With `thorough`, pages are verified in any case."""
    return retry_if_replaced(path, lambda: _open_reader(path, thorough))


def _open_reader(path: str, thorough: bool) -> Database | None:
    if is_absent(path):
        return None
    check_files(path)
    seal = read_seal(path)
    vfs = checking_vfs() if thorough or not seal else None
    try:
        try:
            return _reader(
                apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY, vfs=vfs), path, seal
            )
        except (apsw.CantOpenError, apsw.ReadOnlyError):
            if os.access(os.path.dirname(path) or ".", os.W_OK):
                raise
            # A WAL database needs to create a file next to it. Where that is not possible, no other
            # process writes either.
            escaped = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
            flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
            return _reader(
                apsw.Connection(f"file:{escaped}?immutable=1", flags=flags, vfs=vfs), path, seal
            )
    except DRIVER_ERRORS as error:
        raise translate(error, path) from error


def retry_if_replaced(path: str, open_it: Callable[[], Database | None]) -> Database | None:
    """Open the index, and retry if it was deleted or replaced in the meantime.

    In that case the log may belong to another index, and an error says nothing about the current
    one."""
    for is_last in (False,) * MOST_ATTEMPTS + (True,):
        before = main_file(path)
        try:
            found = open_it()
        except ClawmarkError:
            if not is_last and main_file(path) != before:
                continue
            raise
        # An open file keeps its inode; that of one that could not be opened may have been reused.
        if found is None or is_last or main_file(path)[:2] == before[:2]:
            break
        found.close()
    return found


def _reader(connection: apsw.Connection, path: str, seal: str) -> Database | None:
    try:
        set_up(connection)
        index_id = identify(connection, path)
        stamp = stamp_of(path)
        if index_id is None or stamp is None:  # Empty, or deleted while it was opened.
            connection.close()
            return None
        check_seal(connection, path, seal, index_id)
        connection.authorizer = authorize
        return Database(connection=connection, path=path, stamp=stamp, seconds=QUERY_SECONDS)
    except BaseException:  # also on KeyboardInterrupt
        connection.close()
        raise


def open_damaged(path: str) -> Database:
    """Open what is left of an index that was set aside: every page is verified, the schema
    is not."""
    check_files(path)
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY, vfs=checking_vfs())
        try:
            set_up(connection)
            connection.authorizer = authorize
        except BaseException:  # also on KeyboardInterrupt
            connection.close()
            raise
    except DRIVER_ERRORS as error:
        raise translate(error, path) from error
    return Database(connection=connection, path=path, stamp=NO_STAMP, seconds=QUERY_SECONDS)


def checking_vfs() -> str | None:
    """Return the name of the VFS that checks pages; None if the driver does not include it."""
    names = apsw.vfs_names()
    if CHECKING_VFS in names:
        return CHECKING_VFS
    try:
        # It registers itself as the default VFS when it is loaded; that is undone.
        connection = apsw.Connection(":memory:")
        try:
            connection.enable_load_extension(True)
            connection.load_extension(
                os.path.join(os.path.dirname(apsw.__file__), "sqlite_extra_binaries", "cksumvfs")
            )
            apsw.set_default_vfs(names[0])
        finally:
            connection.close()
    except apsw.Error:
        return None
    return CHECKING_VFS


def check_seal(connection: apsw.Connection, path: str, seal: str, index_id: str) -> None:
    """Refuse the log of another index, and a file whose header says that it has no checksums."""
    if seal and seal != index_id:
        # The main file is unchanged, so only its log can contain another id.
        raise IndexDamaged(f"The log {path}-wal belongs to another index.", hint=FIX_HINT)
    if not seal and checking_vfs() and connection.reserve_bytes("main") != CHECKSUM_BYTES:
        raise IndexDamaged(f"The index {path} has lost its checksums.", hint=FIX_HINT)


def one_line(text: str) -> str:
    """Return a message of SQLite on one line, without the file name that it always contains."""
    return " ".join(text.replace("*** in database main ***", "").split())


def open_empty(path: str, first_rows: Sequence[tuple[str, str]]) -> Database:
    """Open an empty index in memory: what a reader sees if there is no file."""
    connection = apsw.Connection(":memory:")
    create(connection, first_rows)
    return Database(connection=connection, path=path, stamp=NO_STAMP, seconds=QUERY_SECONDS)


def set_up(connection: apsw.Connection) -> None:
    connection.set_busy_timeout(BUSY_MS)
    for switch, value in (
        (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
        (apsw.SQLITE_DBCONFIG_DQS_DML, 0),
        (apsw.SQLITE_DBCONFIG_DQS_DDL, 0),
        # Closing must not checkpoint: that is done only under the write lock.
        (apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1),
    ):
        connection.config(switch, value)
    for limit, value in _LIMITS.items():
        connection.limit(limit, value)
    connection.execute(_CAUTIOUS).fetchall()


def create(connection: apsw.Connection, first_rows: Sequence[tuple[str, str]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in create_statements():
            connection.execute(statement)
        connection.executemany("INSERT INTO meta (key, value) VALUES (?, ?)", first_rows)
        connection.execute("COMMIT")
    except BaseException:  # also on KeyboardInterrupt
        connection.execute("ROLLBACK")
        raise


def identify(connection: apsw.Connection, path: str) -> str | None:
    """Return the id of the index; None for an empty database.

    Raise if it is not exactly an index of ours."""
    found: list[Any] = connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_schema"
    ).fetchall()
    if not found:
        return None
    if connection.pragma("application_id") != APPLICATION_ID:
        raise IndexDamaged(f"{path} is a database, but not one of Clawmark's.", hint=FIX_HINT)
    facts: dict[str, str] = {}
    if any(name == "meta" for _, name, _, _ in found):
        rows: list[Any] = connection.execute(_NAMES).fetchall()
        facts = dict(rows)
        check_version(str(facts.get("schema_version", "")), path)
    check_objects(found, path)
    return str(facts.get("index_id", ""))


def authorize(
    action: int, one: str | None, two: str | None, _database: str | None, _trigger: str | None
) -> int:
    """Deny what none of our statements need, in case a damaged schema or a query contains it."""
    if action in _DENIED:
        return apsw.SQLITE_DENY
    if action == apsw.SQLITE_PRAGMA and two is not None and one != "incremental_vacuum":
        return apsw.SQLITE_DENY
    if action == apsw.SQLITE_FUNCTION and two == "load_extension":
        return apsw.SQLITE_DENY
    return apsw.SQLITE_OK
