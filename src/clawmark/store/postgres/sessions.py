"""Transactions of the service role for one declared caller: how they begin, lock and end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import psycopg

from clawmark.model.errors import IndexBusy
from clawmark.store.postgres.rows import NO_INDEX, IndexRow
from clawmark.store.postgres.servers import Connection

ROLE = "clawmark_service"
READ = "REPEATABLE READ READ ONLY"
"""Every statement of the transaction sees the same moment."""
WRITE = "READ COMMITTED"
_INDEX_COLUMNS = ", ".join(IndexRow._fields)


def begin(connection: Connection, mode: str, caller: int) -> None:
    """Begin a transaction for a caller, by its number."""
    _begin(connection, mode)
    connection.execute(
        "SELECT set_config('clawmark.caller', %s, true), set_config('enable_seqscan', 'off', true)",
        (str(caller),),
    )


def begin_named(connection: Connection, mode: str, name: str) -> int:
    """Begin a transaction for a caller of this login, by its name, and return its number.

    A name that is not known is the caller 0, which sees nothing."""
    _begin(connection, mode)
    found = connection.execute(
        "SELECT c.id, set_config('clawmark.caller', c.id::text, true), "
        "set_config('enable_seqscan', 'off', true), set_config('synchronous_commit', 'on', true) "
        "FROM (SELECT coalesce(clawmark.caller_named(%s), 0) AS id) c",
        (name,),
    ).fetchone()
    assert found is not None
    return int(found[0])


def _begin(connection: Connection, mode: str) -> None:
    """Begin a transaction of the service role.

    A connection that was lost while it was idle is replaced by the pool, not here."""
    connection.autocommit = True
    connection.execute(f"BEGIN ISOLATION LEVEL {mode}; SET LOCAL ROLE {ROLE}")


def end(connection: Connection) -> None:
    """Roll back what is not committed; a lost connection has nothing to roll back."""
    with suppress(psycopg.Error):
        connection.rollback()


def index_rows(connection: Connection, scopes: Sequence[int]) -> dict[int, IndexRow]:
    """Return the rows of some indexes by scope."""
    found = connection.execute(
        f"SELECT scope, {_INDEX_COLUMNS} FROM clawmark.indexes WHERE scope = ANY (%s)",
        (list(scopes),),
    ).fetchall()
    known = {scope: IndexRow._make(row) for scope, *row in found}
    return {scope: known.get(scope, NO_INDEX) for scope in scopes}


def lock_index(
    connection: Connection,
    scope: int,
    timeout: float,
    *,
    shown: str,
    on_wait: Callable[[], None] = lambda: None,
) -> IndexRow | None:
    """Lock an index for writing; return its row, or None if it was removed or is not writable.

    `on_wait` is called if another writer has the lock."""
    query = f"SELECT {_INDEX_COLUMNS} FROM clawmark.indexes WHERE scope = %s FOR UPDATE"
    row = connection.execute(f"{query} SKIP LOCKED", (scope,)).fetchone()
    if row is None:
        on_wait()
        if timeout <= 0:
            raise IndexBusy(
                f"The index in {shown} is being written by another process.",
                hint="Try again in a moment.",
            )
        connection.execute(
            "SELECT set_config('lock_timeout', %s, true)", (f"{max(1, int(timeout * 1000))}ms",)
        )
        row = connection.execute(query, (scope,)).fetchone()
    return None if row is None else IndexRow._make(row)
