"""HNSW indexes for large vector spaces: one for each, so that no other scope dilutes its graph.

A small space needs none: comparing all of its vectors is fast and exact. An index belongs to the
tables' owner, so `clawmark db upgrade` makes it, and so does a sync whose login owns the tables."""

from __future__ import annotations

from typing import NamedTuple

from clawmark.store.postgres.servers import Connection

LARGE_SPACE = 20_000
"""More vectors than this are searched with an HNSW index, if there is one."""
MOST_DIMS = 4_000
"""HNSW indexes of halfvec take at most this many dimensions."""
_LARGE = (
    "SELECT s.scope, s.id, s.dims, sum(c.vectors) FROM clawmark.spaces s "
    "JOIN clawmark.coverage c ON c.scope = s.scope AND c.space = s.id "
    "GROUP BY s.scope, s.id, s.dims HAVING sum(c.vectors) > %s AND s.dims <= %s"
)
_EXISTING = (
    "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
    "JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = 'clawmark' AND c.relname LIKE 'vectors\\_%%\\_%%' AND i.indisvalid"
)


class VectorIndexes(NamedTuple):
    """Which large spaces have an index, and which do not, by the name of the index."""

    made: tuple[str, ...]
    missing: tuple[str, ...]

    @classmethod
    def read(cls, connection: Connection, large: int = LARGE_SPACE) -> VectorIndexes:
        made = {name for (name,) in connection.execute(_EXISTING).fetchall()}
        rows = connection.execute(_LARGE, (large, MOST_DIMS)).fetchall()
        wanted = [index_name(scope, space) for scope, space, _, _ in rows]
        return cls(tuple(sorted(made)), tuple(name for name in wanted if name not in made))


def index_name(scope: int, space: int) -> str:
    """Return the name of the index of a vector space."""
    return f"vectors_{scope}_{space}"


def has_index(connection: Connection, scope: int, space: int) -> bool:
    """Return whether a vector space has a usable index."""
    row = connection.execute(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)",
        (f"clawmark.{index_name(scope, space)}",),
    ).fetchone()
    return row is not None and bool(row[0])


def make_vector_indexes(connection: Connection, large: int = LARGE_SPACE) -> list[str]:
    """Make the indexes that are missing, without blocking writers, and return their names.

    Indexes of dropped spaces are removed, and those of an interrupted attempt made again."""
    _drop_unused(connection)
    made = VectorIndexes.read(connection, large).made
    names = []
    for scope, space, dims, _ in connection.execute(_LARGE, (large, MOST_DIMS)).fetchall():
        name = index_name(scope, space)
        if name in made:
            continue
        connection.execute(f"DROP INDEX IF EXISTS clawmark.{name}")
        connection.execute(
            f"CREATE INDEX CONCURRENTLY {name} ON clawmark.vectors "
            f"USING hnsw ((embedding::halfvec({dims})) halfvec_ip_ops) "
            f"WITH (m = 16, ef_construction = 128) "
            f"WHERE scope = {scope} AND space = {space} AND embedding IS NOT NULL"
        )
        names.append(name)
    return names


def owns_tables(connection: Connection) -> bool:
    """Return whether the login may make indexes."""
    row = connection.execute(
        "SELECT pg_has_role(session_user, relowner, 'USAGE') FROM pg_class "
        "WHERE oid = to_regclass('clawmark.vectors')"
    ).fetchone()
    return row is not None and bool(row[0])


def _drop_unused(connection: Connection) -> None:
    used = {
        index_name(scope, space)
        for scope, space in connection.execute("SELECT scope, id FROM clawmark.spaces").fetchall()
    }
    for (name,) in connection.execute(_EXISTING).fetchall():
        if name not in used:
            connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS clawmark.{name}")
