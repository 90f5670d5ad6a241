"""Recovers vectors from a damaged index that was set aside: they may have cost money.

The new index knows the name of the old file. The vectors on every page that can still be read go
into the cache, if they are unit vectors of the size they claim. Text and words are not recovered:
they are rebuilt from the files."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from typing import Any

from clawmark.model.errors import ClawmarkError
from clawmark.model.values import Identity, Vector
from clawmark.store.sqlite.db import Database, open_damaged
from clawmark.store.sqlite.store import SqliteStore

AT_ONCE, MOST_EMPTY = 200, 500
"""How many rows are read together, and after how many empty batches reading stops."""
NEARLY_ONE = 0.01

_COLUMNS = "id, provider, model, provider_key, dims, hash, embedding"
_ROWS = f"SELECT {_COLUMNS} FROM embedding_cache WHERE id > ? AND id <= ? ORDER BY id"


def salvage(index: SqliteStore, name: str, *, timeout: float = 10.0) -> int:
    """Copy the readable vectors of the file `name`, which was set aside; return how many."""
    count = 0
    for vectors in _portions(os.path.join(os.path.dirname(index.path), os.path.basename(name))):
        with index.transaction(timeout=timeout) as writer:
            for identity, some in vectors.items():
                writer.cache_vectors(identity, some)
                count += len(some)
    with index.transaction(timeout=timeout) as writer:
        healed = writer.facts("healed")
        writer.set_facts("healed", {key: healed[key] for key in healed if key != "aside"})
    return count


def _portions(path: str) -> Iterator[dict[Identity, dict[str, Vector]]]:
    try:
        db = open_damaged(path)
    except ClawmarkError:
        return
    try:
        for rows in _readable(db):
            vectors: dict[Identity, dict[str, Vector]] = {}
            for _, provider, model, key, dims, text_hash, vector in rows:
                vectors.setdefault(
                    Identity(provider=provider, model=model, provider_key=key, dims=dims), {}
                )[text_hash.hex()] = vector
            if vectors:
                yield vectors
    finally:
        db.close()


def _readable(db: Database) -> Iterator[list[Any]]:
    """Yield the rows in batches; an incomplete batch is read again row by row.

    Rows may have been evicted, a page may be broken, or be in the place of another one and return
    the wrong rows. The loop ends even if a page contains wrong numbers."""
    first, last = _edge(db, "min", 1), _edge(db, "max", sys.maxsize)
    # A small first number may be wrong without harm: the rows before it are read as well.
    start = first - 1 if AT_ONCE * MOST_EMPTY < first <= last else 0
    empty = 0
    for after in range(start, last, AT_ONCE):
        rows = _sound_rows(db, after, after + AT_ONCE)
        if [row[0] for row in rows] != list(range(after + 1, after + AT_ONCE + 1)):
            rows = _one_by_one(db, after)
        yield rows
        empty = 0 if rows else empty + 1
        if empty == MOST_EMPTY:
            return


def _edge(db: Database, which: str, otherwise: int) -> int:
    try:
        found = db.rows(f"SELECT {which}(id) FROM embedding_cache", patient=True)[0][0]
    except ClawmarkError:
        return otherwise
    return found if isinstance(found, int) else 0


def _one_by_one(db: Database, after: int) -> list[Any]:
    return [
        row
        for number in range(after, after + AT_ONCE)
        for row in _sound_rows(db, number, number + 1)
    ]


def _sound_rows(db: Database, after: int, last: int) -> list[Any]:
    """Return the valid rows of a range; none if one of its pages is broken."""
    try:
        return list(filter(_is_sound, db.rows(_ROWS, (after, last), patient=True)))
    except ClawmarkError:
        return []


def _is_sound(row: tuple[Any, ...]) -> bool:
    _, provider, model, key, dims, text_hash, vector = row
    if not all(isinstance(name, str) for name in (provider, model, key)):
        return False
    if not (isinstance(text_hash, bytes) and len(text_hash) == 32):
        return False
    if not (isinstance(dims, int) and isinstance(vector, bytes) and len(vector) == 4 * dims > 0):
        return False
    return abs(math.hypot(*memoryview(vector).cast("f")) - 1.0) < NEARLY_ONE
