"""What a vector engine offers, and how one is chosen; `blocks` and `vec0` are the two there are.

An engine keeps (chunk key, cache row, vector) entries per space inside the transaction of the
connection it is given. Counting, revisions and the float32 vectors themselves are left to the
writer and the embedding cache."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from clawmark.model.errors import IndexStoreError
from clawmark.model.values import Vector
from clawmark.store.sqlite.db import Database
from clawmark.store.sqlite.meta import SpaceFacts


class Entry(NamedTuple):
    """One chunk in a space; without a vector (and with cache row 0) when the model does not cover
    its text.
    """

    key: int
    row: int
    vector: Vector | None


Hidden = Callable[[int], bool] | None
"""Says which chunk keys a search must leave out; nothing when there are none."""


class VectorIndex(Protocol):
    """Entries in, nearest chunks out. All methods work on the spaces of one index."""

    def add(self, facts: SpaceFacts, entries: Sequence[Entry]) -> None:
        """Store entries of chunks the space does not hold yet; `facts.revision` is the new
        revision.
        """

    def remove(self, facts: SpaceFacts, keys: frozenset[int]) -> tuple[int, int]:
        """Forget chunks; how many had a vector, and how many were held as not covered."""

    def nearest(
        self, facts: SpaceFacts, query: Vector, limit: int, is_hidden: Hidden
    ) -> list[tuple[int, float]]:
        """The chunks with the highest cosine, best first, hidden ones left out; scores are exact to
        float32.
        """

    def held(self, facts: SpaceFacts, among: frozenset[int] | None = None) -> dict[int, int]:
        """The chunks the space holds (of those asked about) with their cache rows; 0 for one that
        is not covered.
        """

    def drop_some(self, space: int) -> bool:
        """Delete a part of a space that is not used any more, as much as a short transaction can;
        False when all is gone.
        """


Residents = dict[tuple[str, int], Any]
"""What engines keep in memory between searches, by index and space."""


def open_engine(name: str, db: Database, index_id: str, residents: Residents) -> VectorIndex:
    """The engine of this name, working on one connection."""
    if name == "blocks":
        from clawmark.store.sqlite.vectors.blocks import BlockVectors

        return BlockVectors(db, index_id, residents)
    if name == "sqlite-vec":
        from clawmark.store.sqlite.vectors.vec0 import Vec0Vectors

        return Vec0Vectors(db)
    raise IndexStoreError(
        f"There is no vector engine {name!r}.",
        hint='Set memorySearch.store.vector.engine to "blocks" or "sqlite-vec".',
    )
