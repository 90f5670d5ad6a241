"""The alternative vector engine (`store.vector.engine: "sqlite-vec"`): one vec0 table per space.

It gives the same answers as `blocks`, about thirty times slower; it is for users who query the
vectors with SQL. The extension is located without importing its Python package, which would import
numpy, and can only be loaded by this module."""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from importlib.util import find_spec

from clawmark.model.errors import IndexStoreError
from clawmark.model.values import Vector
from clawmark.store.sqlite.db import Database
from clawmark.store.sqlite.meta import SpaceFacts
from clawmark.store.sqlite.schema import VEC0_PREFIX
from clawmark.store.sqlite.vectors import packed
from clawmark.store.sqlite.vectors.base import Entry, Hidden

LARGEST_K = 4096
"""The most results vec0 returns."""
DROPPED_AT_ONCE = 300
"""Rows of a dropped space that one step deletes (about 30 ms)."""


class Vec0Vectors:
    """`VectorIndex` over vec0 tables; the packed blocks only record which chunks there are."""

    def __init__(self, db: Database) -> None:
        self._db = db
        if "vec0" not in db.extensions:
            db.load_extension(find_extension())

    def add(self, facts: SpaceFacts, entries: Sequence[Entry]) -> None:
        space, dims = facts.space.id, facts.space.identity.dims
        covered = [entry for entry in entries if entry.vector is not None]
        packed.add_uncovered(
            self._db,
            space,
            facts.revision,
            [entry.key for entry in entries if entry.vector is None],
        )
        if not covered:
            return
        parts = {
            "keys": array("q", [entry.key for entry in covered]).tobytes(),
            "rows": array("q", [entry.row for entry in covered]).tobytes(),
        }
        packed.append(self._db, space, facts.revision, parts)
        self._db.rows(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS {_table(space)} "
            f"USING vec0(key INTEGER PRIMARY KEY, embedding float[{dims}] distance_metric=cosine)"
        )
        self._db.many(
            f"INSERT INTO {_table(space)} (key, embedding) VALUES (?, ?)",
            [(entry.key, entry.vector) for entry in covered],
        )

    def remove(self, facts: SpaceFacts, keys: frozenset[int]) -> tuple[int, int]:
        space = facts.space.id
        removed = packed.remove(self._db, space, facts.revision, keys, {"keys": 8, "rows": 8})
        if removed:
            self._db.many(f"DELETE FROM {_table(space)} WHERE key = ?", [(key,) for key in keys])
        return removed, packed.remove_uncovered(self._db, space, facts.revision, keys)

    def nearest(
        self, facts: SpaceFacts, query: Vector, limit: int, is_hidden: Hidden
    ) -> list[tuple[int, float]]:
        if not facts.space.vectors:
            return []
        wanted = min(limit, LARGEST_K)
        while True:
            found = self._db.rows(
                f"SELECT key, distance FROM {_table(facts.space.id)} WHERE embedding MATCH ? AND "
                f"k = ?",
                (query, wanted),
            )
            seen = [
                (key, 1.0 - distance)
                for key, distance in found
                if is_hidden is None or not is_hidden(key)
            ]
            if len(seen) >= limit or len(found) < wanted:
                return sorted(seen, key=lambda pair: (-pair[1], pair[0]))[:limit]
            if wanted == LARGEST_K:
                return self._nearest_of_all(facts, query, limit, is_hidden)
            wanted = min(wanted * 4, LARGEST_K)

    def _nearest_of_all(
        self, facts: SpaceFacts, query: Vector, limit: int, is_hidden: Hidden
    ) -> list[tuple[int, float]]:
        """Compare every entry: more are hidden or wanted than vec0 returns at once."""
        found = self._db.rows(
            f"SELECT key, vec_distance_cosine(embedding, ?) AS away FROM "
            f"{_table(facts.space.id)} ORDER BY away, key",
            (query,),
        )
        return [
            (key, 1.0 - distance)
            for key, distance in found
            if is_hidden is None or not is_hidden(key)
        ][:limit]

    def held(self, facts: SpaceFacts, among: frozenset[int] | None = None) -> dict[int, int]:
        return packed.held(self._db, facts.space.id, among)

    def drop_some(self, space: int) -> bool:
        if packed.drop_some(self._db, space):
            return True
        if not self._db.rows("SELECT 1 FROM sqlite_schema WHERE name = ?", (_table(space),)):
            return False
        # Dropping a full table takes as long as overwriting it; row by row, vec0 frees its space
        # gradually.
        some = self._db.rows(
            f"SELECT rowid FROM {_table(space)}_rowids LIMIT ?", (DROPPED_AT_ONCE,)
        )
        if some:
            self._db.many(f"DELETE FROM {_table(space)} WHERE key = ?", some)
            return True
        self._db.rows(f"DROP TABLE {_table(space)}")
        return False


def find_extension() -> str:
    """Return the path of the extension in the installed package `sqlite-vec`, without its
    suffix."""
    spec = find_spec("sqlite_vec")
    for folder in spec.submodule_search_locations or () if spec else ():
        return os.path.join(folder, "vec0")
    raise IndexStoreError(
        "The vector engine sqlite-vec is configured but not installed.",
        hint="pip install 'clawmark[sqlite-vec]'",
    )


def _table(space: int) -> str:
    return f"{VEC0_PREFIX}{space}"
