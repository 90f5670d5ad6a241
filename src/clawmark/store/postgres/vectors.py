"""The nearest vectors of one space: compared one by one if they are few, by HNSW if they are many.

Half-precision vectors choose the candidates; their cosines are computed from the float32 vectors of
the cache, so that they are those of the other store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from clawmark.model.values import Identity, Vector
from clawmark.store.postgres.filtering import Selection
from clawmark.store.postgres.servers import Connection
from clawmark.store.postgres.vector_indexes import LARGE_SPACE, has_index
from clawmark.store.similarity import dot_products

MORE = 24
"""So many more candidates are compared exactly: rounding may have changed their order."""
EF_LEAST, EF_MOST = 200, 1000
"""The limits of hnsw.ef_search: how many candidates the index keeps while it searches."""
WIDE_SHARE = 20
"""One in so many vectors of a large space is a candidate: recall@24 is 0.986 then in a space of
500,000 mixed texts, and 0.67 with 48 candidates (bench/results/team.json)."""


class VectorQuery(NamedTuple):
    """What is searched for, and where."""

    scope: int
    space: int
    identity: Identity
    edition: int
    query: Vector
    limit: int


def as_halfvec(vector: Vector) -> str:
    """Return a vector as PostgreSQL reads it."""
    return "[" + ",".join([format(number, ".7g") for number in memoryview(vector).cast("f")]) + "]"


def nearest(
    connection: Connection, wanted: VectorQuery, held: int, selection: Selection | None
) -> list[tuple[int, float]]:
    """Return the nearest chunks with their cosines, best first; `held` is the size of the space."""
    is_large = held > LARGE_SPACE and has_index(connection, wanted.scope, wanted.space)
    if is_large and selection is not None:
        is_large = _is_more_than(connection, selection, LARGE_SPACE)
    if is_large:
        keys = _by_index(connection, wanted, selection, held)
    else:
        keys = _by_comparison(connection, wanted, selection)
    cosines = cosines_of(connection, wanted, keys)
    return sorted(cosines, key=lambda item: (-item[1], item[0]))[: wanted.limit]


def cosines_of(
    connection: Connection, wanted: VectorQuery, keys: Sequence[int]
) -> list[tuple[int, float]]:
    """Return the cosines of given chunks; those without a vector are left out."""
    if not keys:
        return []
    rows = connection.execute(
        "SELECT c.key, e.embedding FROM clawmark.chunks c JOIN clawmark.cache e "
        "ON e.scope = c.scope AND e.hash = c.hash AND e.provider = %s AND e.model = %s "
        "AND e.provider_key = %s AND e.dims = %s "
        f"WHERE c.scope = {wanted.scope} AND c.key = ANY (%s)",
        (*wanted.identity, list(keys)),
        binary=True,
    ).fetchall()
    found = dict(rows)
    held = [key for key in keys if key in found]
    cosines = dot_products(wanted.query, [found[key] for key in held])
    return list(zip(held, cosines, strict=True))


def _by_comparison(
    connection: Connection, wanted: VectorQuery, selection: Selection | None
) -> list[int]:
    only, parameters = "", ()
    if selection is not None:
        # As an array, the selection is made once; joined, it may be made for each vector.
        only, parameters = f" AND v.key = ANY (ARRAY({selection.sql}))", selection.parameters
    rows = connection.execute(
        f"SELECT v.key FROM clawmark.vectors v WHERE {_place(wanted)}{only} "
        "ORDER BY v.embedding <#> %s::halfvec, v.key LIMIT %s",
        (*parameters, as_halfvec(wanted.query), wanted.limit + MORE),
    ).fetchall()
    return [key for (key,) in rows]


def _by_index(
    connection: Connection, wanted: VectorQuery, selection: Selection | None, held: int
) -> list[int]:
    """Take many candidates from the index, and compare those: the graph alone finds too few of the
    nearest vectors in a large space whose vectors are all alike."""
    only, parameters = _restriction(selection)
    wide = max(wanted.limit + MORE, held // WIDE_SHARE)
    # The policies make PostgreSQL expect few rows, and it would rather compare and sort them all.
    connection.execute(
        "SELECT set_config('hnsw.ef_search', %s, true), "
        "set_config('hnsw.max_scan_tuples', %s, true), "
        "set_config('hnsw.iterative_scan', 'relaxed_order', true), "
        "set_config('hnsw.scan_mem_multiplier', '8', true), set_config('enable_sort', 'off', true)",
        (str(min(max(EF_LEAST, wide), EF_MOST)), str(max(20_000, 8 * wide))),
    )
    kind = f"halfvec({wanted.identity.dims})"
    query = as_halfvec(wanted.query)
    # Without the sum, PostgreSQL takes the candidates for sorted and stops after the first ones.
    rows = connection.execute(
        f"SELECT key FROM (SELECT v.key, v.embedding::{kind} <#> %s::{kind} AS distance "
        f"FROM clawmark.vectors v WHERE {_place(wanted)}{only} "
        f"ORDER BY v.embedding::{kind} <#> %s::{kind} LIMIT %s) c ORDER BY distance + 0 LIMIT %s",
        (query, *parameters, query, wide, wanted.limit + MORE),
    ).fetchall()
    connection.execute("SET LOCAL enable_sort = on")
    return [key for (key,) in rows]


def _place(wanted: VectorQuery) -> str:
    # Numbers are written out: PostgreSQL uses a partial index only if it can compare them.
    return (
        f"v.scope = {wanted.scope} AND v.space = {wanted.space} AND v.embedding IS NOT NULL "
        f"AND v.edition = {wanted.edition}"
    )


def _restriction(selection: Selection | None) -> tuple[str, tuple[object, ...]]:
    if selection is None:
        return "", ()
    return f" AND v.key IN ({selection.sql})", selection.parameters


def _is_more_than(connection: Connection, selection: Selection, number: int) -> bool:
    row = connection.execute(
        f"SELECT count(*) FROM ({selection.sql} LIMIT {number + 1}) s", selection.parameters
    ).fetchone()
    return row is not None and row[0] > number
