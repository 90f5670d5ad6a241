"""Checks that a vector engine works, with two known vectors in memory."""

from __future__ import annotations

from array import array

from clawmark.model.errors import IndexStoreError
from clawmark.model.values import Identity, Space
from clawmark.store.sqlite import cache
from clawmark.store.sqlite.db import open_empty
from clawmark.store.sqlite.meta import SpaceFacts, first_rows
from clawmark.store.sqlite.vectors.base import Entry, open_engine

DIMS = 64
TOLERANCE = 0.01


def check_engine(name: str) -> None:
    """Score a vector against itself (1.0) and another one (0.6).

    Raise IndexStoreError if the engine cannot be loaded or the scores are wrong."""
    same, other = _vector(1.0, 0.0), _vector(0.6, 0.8)
    identity = Identity(provider="check", model="check", provider_key="", dims=DIMS)
    facts = SpaceFacts(Space(1, identity, ready=True, vectors=2), uncovered=0, revision=1)
    db = open_empty(":memory:", first_rows(name))
    try:
        engine = open_engine(name, db, "", {})
        rows, _ = cache.store(db, identity, {"00" * 32: same, "11" * 32: other}, 0)
        entries = [
            Entry(key, row, vector)
            for key, row, vector in zip((1, 2), rows.values(), (same, other), strict=True)
        ]
        engine.add(facts, entries)
        found = engine.nearest(facts, same, 2, None)
    finally:
        db.close()
    expected = [(1, 1.0), (2, 0.6)]
    is_right = len(found) == 2 and all(
        key == wanted and abs(score - wanted_score) < TOLERANCE
        for (key, score), (wanted, wanted_score) in zip(found, expected, strict=True)
    )
    if not is_right:
        raise IndexStoreError(
            f"The vector engine {name} scored two known vectors as {found} instead of {expected}.",
            hint="Install simsimd and sqlite-vec again, or set "
            "memorySearch.store.vector.engine to the other engine.",
        )


def _vector(first: float, second: float) -> bytes:
    return array("f", [first, second, *[0.0] * (DIMS - 2)]).tobytes()
