"""The schema in SQL files, applied one after the other: `clawmark db init`, `upgrade`, `status`.

Each file is one transaction. An advisory lock keeps two processes from applying it twice. There is
no way back: a file that was released never changes, and later files correct it."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

from psycopg import sql

from clawmark.model.errors import IndexStoreError
from clawmark.store.postgres.servers import Connection, Server
from clawmark.store.postgres.vector_indexes import VectorIndexes, make_vector_indexes, owns_tables

_LOCK = 0x434C4D4B
"""The key of the advisory lock: `CLMK`."""


class Migration(NamedTuple):
    """One file of the schema."""

    version: int
    name: str
    text: str


class DatabaseStatus(NamedTuple):
    """What `clawmark db status` reports."""

    address: str
    server_version: str
    vector_version: str
    applied: tuple[str, ...]
    pending: tuple[str, ...]
    bytes: int
    vector_indexes: VectorIndexes


def migrations() -> list[Migration]:
    """Return the files in order."""
    folder = files("clawmark.store.postgres") / "migrations"
    found = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".sql")),
        key=lambda file: file.name,
    )
    return [
        Migration(int(file.name[:4]), file.name.removesuffix(".sql"), file.read_text("utf-8"))
        for file in found
    ]


def upgrade(server: Server) -> tuple[str, ...]:
    """Apply what is missing, make the vector indexes of large scopes, and return the names."""
    done = []
    with server.direct() as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        _refuse_newer(server, _applied(connection))
        for migration in migrations():
            if migration.name not in _applied(connection):
                _apply(connection, migration)
                done.append(migration.name)
        if owns_tables(connection):
            make_vector_indexes(connection)
            connection.execute("ANALYZE")
        connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))
    return tuple(done)


def database_status(server: Server) -> DatabaseStatus:
    """Report what is applied and what is missing; nothing is changed."""
    with server.direct() as connection:
        applied = _applied(connection)
        row = connection.execute(
            "SELECT current_setting('server_version'), "
            "coalesce((SELECT extversion FROM pg_extension WHERE extname = 'vector'), ''), "
            "coalesce((SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = 'clawmark' AND c.relkind = 'r'), 0)"
        ).fetchone()
        assert row is not None
        indexes = (
            VectorIndexes.read(connection)
            if applied and owns_tables(connection)
            else VectorIndexes((), ())
        )
    return DatabaseStatus(
        address=server.shown,
        server_version=row[0].split(" ")[0],
        vector_version=row[1],
        applied=applied,
        pending=tuple(one.name for one in migrations() if one.name not in applied),
        bytes=int(row[2]),
        vector_indexes=indexes,
    )


def check_version(server: Server, connection: Connection) -> None:
    """Raise IndexStoreError unless the tables are those of this version."""
    applied, known = _applied(connection), migrations()
    _refuse_newer(server, applied)
    if any(migration.name not in applied for migration in known):
        raise IndexStoreError(
            f"The tables in {server.shown} are "
            + ("not set up." if not applied else "of an older version of Clawmark."),
            hint=f"Run `clawmark db {'upgrade' if applied else 'init'}` as their owner.",
        )


def _refuse_newer(server: Server, applied: tuple[str, ...]) -> None:
    newer = sorted(set(applied) - {migration.name for migration in migrations()})
    if newer:
        raise IndexStoreError(
            f"The tables in {server.shown} are of a newer version of Clawmark ({newer[-1]}).",
            hint="Update Clawmark on this machine.",
        )


def _applied(connection: Connection) -> tuple[str, ...]:
    found = connection.execute("SELECT to_regclass('clawmark.migrations') IS NOT NULL").fetchone()
    if found is None or not found[0]:
        return ()
    rows = connection.execute("SELECT name FROM clawmark.migrations ORDER BY version").fetchall()
    return tuple(name for (name,) in rows)


def _apply(connection: Connection, migration: Migration) -> None:
    with connection.transaction():
        connection.execute("CREATE SCHEMA IF NOT EXISTS clawmark")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS clawmark.migrations (version integer PRIMARY KEY, "
            "name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
        )
        connection.execute(sql.SQL(migration.text))
        connection.execute(
            "INSERT INTO clawmark.migrations (version, name) VALUES (%s, %s)", migration[:2]
        )
