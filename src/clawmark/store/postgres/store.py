"""The PostgreSQL implementation of `IndexStore`: the index of one agent in a shared database.

A snapshot is a read-only transaction that sees one moment. A writer locks the row of its index, so
writers of one index take turns and those of different ones do not meet. Every statement runs as the
service role for the declared caller; the policies of the database decide what it sees."""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from clawmark.model.documents import Chunk
from clawmark.model.errors import IndexBusy, IndexStoreError
from clawmark.model.values import FileRow, FileSet, Mark
from clawmark.store.base import ChunkWords
from clawmark.store.postgres.migrate import check_version
from clawmark.store.postgres.rows import IndexRow
from clawmark.store.postgres.servers import Connection, Server
from clawmark.store.postgres.sessions import (
    READ,
    ROLE,
    WRITE,
    begin,
    end,
    index_rows,
    lock_index,
)
from clawmark.store.postgres.snapshot import PostgresSnapshot
from clawmark.store.postgres.transaction import PostgresTransaction
from clawmark.store.postgres.vector_indexes import make_vector_indexes, owns_tables

EVICTED_AT_ONCE = 1_000
ATTEMPTS, PAUSE = 20, 0.05
"""How often storing a large file is tried, and the seconds between two attempts."""


class PostgresStore:
    """The index of one agent in PostgreSQL; see `IndexStore` for the methods."""

    def __init__(
        self,
        server: Server,
        owner: str,
        *,
        cache_entries: int = 50_000,
        unsearched: Sequence[str] = (),
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """`owner` names the agent among those of the same login."""
        self._server = server
        self.owner = owner
        self._cache_entries = cache_entries
        self._unsearched = tuple(unsearched)
        self._clock = clock
        self._declared: tuple[int, int] | None = None
        self._opening = threading.Lock()
        self._first: Mark | None = None
        self.lock_waits = 0
        self.path = server.shown
        """The address without user and password, for messages and `status`."""

    # --- the protocol -----------------------------------------------------------------------------

    def mark(self) -> Mark:
        with self.snapshot() as snapshot:
            return 0, (snapshot.row.index_id, snapshot.scope, 0)

    def was_replaced(self, mark: Mark | None) -> bool:
        expected = mark or self._first
        return expected is not None and self.mark() != expected

    @contextmanager
    def snapshot(self, *, thorough: bool = False) -> Iterator[PostgresSnapshot]:
        """Open a snapshot; PostgreSQL checks its pages itself, so `thorough` changes nothing."""
        with self._connected() as connection:
            scope = self._begin(connection, READ)
            row = index_rows(connection, [scope])[scope]
            self._first = self._first or (0, (row.index_id, scope, 0))
            snapshot = PostgresSnapshot(connection, self._server, scope, row, self._unsearched)
            try:
                yield snapshot
            finally:
                snapshot.close()
                end(connection)

    @contextmanager
    def transaction(self, *, timeout: float = 10.0) -> Iterator[PostgresTransaction]:
        with self._connected() as connection:
            scope = self._begin(connection, WRITE)
            row = self._lock(connection, scope, timeout)
            self._first = self._first or (0, (row.index_id, scope, 0))
            transaction = PostgresTransaction(connection, self._server, scope, row, self._clock)
            try:
                yield transaction
                transaction.finish()
                connection.commit()
            finally:
                transaction.close()
                end(connection)

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
        for attempts_left in reversed(range(ATTEMPTS)):
            with self.snapshot() as snapshot:
                is_rebuilt = building and building == snapshot.building
                which: FileSet = "rebuilt" if is_rebuilt else "visible"
                known = snapshot.files([row.path], which=which).get(row.path)
            if known is not None and known.hash == row.hash:
                return  # Another process has stored the same content.
            try:
                self._stage(row, chunks, words, building, timeout, at_once)
                return
            except IndexBusy:
                if timeout <= 0 or not attempts_left:
                    raise
                time.sleep(PAUSE)

    def begin_rebuild(
        self,
        identity: dict[str, Any],
        *,
        timeout: float = 10.0,
        cancelled: Callable[[], bool] | None = None,
    ) -> int:
        self.tidy(timeout=timeout, cancelled=cancelled)
        if cancelled is not None and cancelled():
            return 0
        with self.transaction(timeout=timeout) as transaction:
            return transaction.begin_rebuild(identity)

    def tidy(
        self,
        *,
        timeout: float = 10.0,
        cancelled: Callable[[], bool] | None = None,
        force: bool = False,
    ) -> None:
        """Delete rows of replaced editions in short transactions, then make vector indexes."""
        with self.snapshot() as snapshot:
            is_due = force or snapshot.has_dead()
        while is_due and (cancelled is None or not cancelled()):
            with self.transaction(timeout=timeout) as transaction:
                is_due = transaction.sweep() > 0
        if cancelled is None or not cancelled():
            self._make_vector_indexes()

    def check(self, *, timeout: float = 10.0) -> None:
        """Do nothing: PostgreSQL checks its own pages, and `doctor` checks the counts."""

    def recover_vectors(self, *, timeout: float = 10.0) -> int:
        """Return 0: an index in PostgreSQL is emptied, not replaced, and keeps its cache."""
        return 0

    def trim_cache(self, *, timeout: float = 10.0) -> int:
        gone = EVICTED_AT_ONCE
        total = 0
        while gone == EVICTED_AT_ONCE:
            with self.transaction(timeout=timeout) as transaction:
                gone = transaction.trim_cache(self._cache_entries, EVICTED_AT_ONCE)
            total += gone
        return total

    @contextmanager
    def record_sync(self, facts: dict[str, object]) -> Iterator[Callable[..., None]]:
        number, known = uuid.uuid4(), {"pid": os.getpid(), **facts}

        def note(**more: object) -> None:
            known.update(more)
            self._record(
                "INSERT INTO clawmark.running (scope, id, facts, noted_at) "
                "VALUES (%s, %s, %s, now()) ON CONFLICT (scope, id) DO UPDATE "
                "SET facts = excluded.facts, noted_at = now()",
                (number, json.dumps(known)),
            )

        try:
            yield note
        finally:
            self._record("DELETE FROM clawmark.running WHERE scope = %s AND id = %s", (number,))

    def close(self) -> None:
        self._server.close()

    # --- maintenance ------------------------------------------------------------------------------

    def exists(self) -> bool:
        return True

    def check_vectors(self) -> None:
        with self.snapshot() as snapshot:
            found = snapshot.connection.execute(
                "SELECT '[1,0]'::halfvec <#> '[1,0]', '[1,0]'::halfvec <#> '[0,1]'"
            ).fetchone()
        if found != (-1.0, 0.0):
            raise IndexStoreError(
                f"pgvector in {self.path} scored known vectors wrongly: {found}.",
                hint="Install pgvector 0.8 or newer on the server.",
            )

    def set_aside(self, kind: str) -> str:
        """Empty a damaged index; its cache stays. Nothing is renamed, so return an empty name."""
        with self.transaction() as transaction:
            transaction.clear()
        return ""

    def erase_deleted(self, *, timeout: float = 10.0) -> int:
        """Remove what was deleted, and every cached vector that no chunk uses; return how many.

        The space of deleted rows is overwritten when PostgreSQL vacuums the tables."""
        self.tidy(timeout=timeout, force=True)
        gone, total = EVICTED_AT_ONCE, 0
        while gone == EVICTED_AT_ONCE:
            with self.transaction(timeout=timeout) as transaction:
                gone = transaction.trim_cache(0, EVICTED_AT_ONCE)
            total += gone
        return total

    # --- internal ---------------------------------------------------------------------------------

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        with self._server.connection() as connection:
            yield connection

    def _begin(self, connection: Connection, mode: str) -> int:
        """Begin a transaction for the declared caller, and return the scope."""
        caller, scope = self._declare(connection)
        begin(connection, mode, caller)
        return scope

    def _declare(self, connection: Connection) -> tuple[int, int]:
        """Return caller and scope of the owner; register them the first time."""
        with self._opening:
            connection.autocommit = True
            if self._declared is None:
                check_version(self._server, connection)
                with connection.transaction():
                    connection.execute(f"SET LOCAL ROLE {ROLE}")
                    found = connection.execute(
                        "SELECT caller, scope FROM clawmark.open_private(%s)", (self.owner,)
                    ).fetchone()
                assert found is not None
                self._declared = (found[0], found[1])
            return self._declared

    def _lock(self, connection: Connection, scope: int, timeout: float) -> IndexRow:
        """Lock the index for writing."""
        row = lock_index(connection, scope, timeout, shown=self.path, on_wait=self._note_wait)
        if row is None:
            self._declared = None
            raise IndexStoreError(
                f"The index in {self.path} was removed.", hint="Run `clawmark index`."
            )
        return row

    def _note_wait(self) -> None:
        self.lock_waits += 1

    def _stage(
        self,
        row: FileRow,
        chunks: Sequence[Chunk],
        words: Callable[[Sequence[Chunk]], Sequence[ChunkWords]],
        building: int,
        timeout: float,
        at_once: int,
    ) -> None:
        with self.transaction(timeout=timeout) as transaction:
            key = transaction.stage_file(row, building=building)
        for start in range(0, len(chunks), at_once):
            some = chunks[start : start + at_once]
            made = words(some)
            with self.transaction(timeout=timeout) as transaction:
                transaction.add_chunks(key, some, made)
        with self.transaction(timeout=timeout) as transaction:
            transaction.finish_file(key)

    def _record(self, sql: str, parameters: Sequence[object]) -> None:
        with suppress(IndexStoreError), self._connected() as connection:
            scope = self._begin(connection, WRITE)
            try:
                connection.execute(sql, (scope, *parameters))
                connection.commit()
            finally:
                end(connection)

    def _make_vector_indexes(self) -> None:
        """Make the missing vector indexes if this login owns the tables."""
        with self.snapshot() as snapshot:
            is_large = any(space.vectors > 0 for space in snapshot.spaces())
        if is_large:
            with self._server.direct() as connection:
                if owns_tables(connection):
                    make_vector_indexes(connection)
