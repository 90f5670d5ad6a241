"""The protocol of a vector engine, and how one is chosen: `blocks` or `vec0`.

An engine stores (chunk key, cache row, vector) entries per space inside the transaction of its
connection. Counts, revisions and the float32 vectors are kept by the transaction and the embedding
cache."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from clawmark.model.errors import IndexStoreError
from clawmark.model.values import Vector
from clawmark.store.sqlite.db import Database
from clawmark.store.sqlite.meta import SpaceFacts


class Entry(NamedTuple):
    """One chunk in a space; without a vector (and with cache row 0) if the model does not cover its
    text."""

    key: int
    row: int
    vector: Vector | None


Hidden = Callable[[int], bool] | None
"""Returns whether a search must leave out a chunk key; None if there is none to leave out."""


class VectorIndex(Protocol):
    """Stores entries and finds the nearest chunks, in the spaces of one index."""

    def add(self, facts: SpaceFacts, entries: Sequence[Entry]) -> None:
        """Store entries of chunks the space does not hold yet; `facts.revision` is the new
        revision."""

    def remove(self, facts: SpaceFacts, keys: frozenset[int]) -> tuple[int, int]:
        """Remove chunks; return how many had a vector, and how many were not covered."""

    def nearest(
        self, facts: SpaceFacts, query: Vector, limit: int, is_hidden: Hidden
    ) -> list[tuple[int, float]]:
        """Return the chunks with the highest cosines, best first, without hidden ones; exact to
        float32."""

    def held(self, facts: SpaceFacts, among: frozenset[int] | None = None) -> dict[int, int]:
        """Return the chunks the space holds (all, or some) with their cache rows; 0 if not
        covered."""

    def drop_some(self, space: int) -> bool:
        """Delete a part of an unused space, in a short transaction; return False when nothing is
        left."""


Residents = dict[tuple[str, int], Any]
"""What engines keep in memory between searches, by index and space."""


def open_engine(name: str, db: Database, index_id: str, residents: Residents) -> VectorIndex:
    """Open the engine of this name on one connection."""
    if name == "blocks":
        # Imported late: only one of the engines is used.
        from clawmark.store.sqlite.vectors.blocks import BlockVectors

        return BlockVectors(db, index_id, residents)
    if name == "sqlite-vec":
        # Imported late: only one of the engines is used.
        from clawmark.store.sqlite.vectors.vec0 import Vec0Vectors

        return Vec0Vectors(db)
    raise IndexStoreError(
        f"There is no vector engine {name!r}.",
        hint='Set memorySearch.store.vector.engine to "blocks" or "sqlite-vec".',
    )
