"""Takes the vectors out of an index that was set aside: they may have cost money, and every one can be checked by itself.

The name of the file is in the new index; every page of it that can still be read gives its vectors to the cache. What is no
unit vector of the size it claims is left behind. Text and words are not taken: the files have them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any

from clawmark.errors import ClawmarkError
from clawmark.index.db import Database, open_remains
from clawmark.index.store import Index
from clawmark.types import Identity, Vector

AT_ONCE = 200
NEARLY_ONE = 0.01

_ROWS = (
    "SELECT id, provider, model, provider_key, dims, hash, embedding FROM embedding_cache WHERE id > ? ORDER BY id LIMIT ?"
)


def salvage(index: Index, *, timeout: float = 10.0) -> int:
    """Copy what can be read of the index set aside last into the cache, and say how many vectors that were."""
    with index.reading() as reader:
        name = reader.healed().get("aside")
    if not isinstance(name, str) or not name:
        return 0
    count = 0
    for vectors in _portions(os.path.join(os.path.dirname(index.path), os.path.basename(name))):
        with index.writing(timeout=timeout) as writer:
            for identity, some in vectors.items():
                writer.put_cached(identity, some)
                count += len(some)
    with index.writing(timeout=timeout) as writer:
        writer.set_healed({key: value for key, value in writer.healed().items() if key != "aside"})
    return count


def _portions(path: str) -> Iterator[dict[Identity, dict[str, Vector]]]:
    try:
        db = open_remains(path)
    except ClawmarkError:
        return
    try:
        for rows in _readable(db):
            vectors: dict[Identity, dict[str, Vector]] = {}
            for _, provider, model, key, dims, text_hash, vector in filter(_is_sound, rows):
                vectors.setdefault(Identity(provider, model, key, dims), {})[text_hash.hex()] = vector
            if vectors:
                yield vectors
    finally:
        db.close()


def _readable(db: Database) -> Iterator[list[Any]]:
    """The rows in portions; a portion with a broken page is tried one by one."""
    try:
        last = db.rows("SELECT max(id) FROM embedding_cache", patient=True)[0][0]
    except ClawmarkError:
        return
    after = 0
    while isinstance(last, int) and after < last:
        try:
            rows = db.rows(_ROWS, (after, AT_ONCE), patient=True)
        except ClawmarkError:
            yield from _one_by_one(db, after)
            after += AT_ONCE
            continue
        if not rows:
            return
        yield rows
        after = rows[-1][0]


def _one_by_one(db: Database, after: int) -> Iterator[list[Any]]:
    for row in range(after, after + AT_ONCE):
        try:
            yield [found for found in db.rows(_ROWS, (row, 1), patient=True) if found[0] == row + 1]
        except ClawmarkError:
            continue


def _is_sound(row: tuple[Any, ...]) -> bool:
    _, provider, model, key, dims, text_hash, vector = row
    if not all(isinstance(name, str) for name in (provider, model, key)):
        return False
    if not (isinstance(text_hash, bytes) and len(text_hash) == 32):
        return False
    if not (isinstance(dims, int) and isinstance(vector, bytes) and len(vector) == 4 * dims > 0):
        return False
    return abs(math.hypot(*memoryview(vector).cast("f")) - 1.0) < NEARLY_ONE
