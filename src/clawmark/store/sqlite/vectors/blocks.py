"""The default vector engine: int8 codes in packed blocks, scanned by `simsimd`; the best are
rescored in float32.

A search loads the codes of a space once and keeps them; later searches read only changed blocks.
Every code is scored. int8 loses nothing (the best 24 are among the best 40 with the shipped
models), while one bit per component with ten candidates per result lost up to 1 %.
`bench/vectors.py` measures both, and a vec0 scan.

Known limit: a space takes one byte per component in memory, 38 MB for 100,000 x 384, and 1.4 ms to
scan that."""

import math
import mmap
import sys
from array import array
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from clawmark.model.values import Vector
from clawmark.store.similarity import Buffer, dot_products, matrix
from clawmark.store.sqlite.db import Database, as_list
from clawmark.store.sqlite.meta import SpaceFacts
from clawmark.store.sqlite.vectors import packed
from clawmark.store.sqlite.vectors.base import Entry, Hidden, Residents
from clawmark.store.sqlite.vectors.codes import (
    best_positions,
    int8_scores,
    query_int8,
    scale_for,
    to_int8,
)
from clawmark.store.sqlite.vectors.packed import Head

SPARE = 32
"""How many candidates are considered beyond a quarter more than the requested results."""
DEVIATIONS = 6.0
"""Every candidate whose code is less than this far below the last result's is scored exactly."""
HUGE_FROM, HUGE_PAGE = 1 << 20, 1 << 21


class Resident(NamedTuple):
    """The codes of one space in memory: all blocks end to end."""

    revision: int
    heads: list[Head]
    keys: Buffer
    rows: Buffer
    codes: Buffer


class BlockVectors:
    """`VectorIndex` over packed blocks."""

    def __init__(self, db: Database, index_id: str, residents: Residents) -> None:
        self._db = db
        self._index_id = index_id
        self._residents = residents

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
        codes = to_int8(
            b"".join([entry.vector for entry in covered if entry.vector is not None]),
            scale_for(dims),
        )
        parts = {
            "keys": array("q", [entry.key for entry in covered]).tobytes(),
            "rows": array("q", [entry.row for entry in covered]).tobytes(),
            "int8": codes,
        }
        packed.append(self._db, space, facts.revision, parts)

    def remove(self, facts: SpaceFacts, keys: frozenset[int]) -> tuple[int, int]:
        space, dims = facts.space.id, facts.space.identity.dims
        removed = packed.remove(
            self._db, space, facts.revision, keys, {"keys": 8, "rows": 8, "int8": dims}
        )
        return removed, packed.remove_uncovered(self._db, space, facts.revision, keys)

    def nearest(
        self, facts: SpaceFacts, query: Vector, limit: int, is_hidden: Hidden
    ) -> list[tuple[int, float]]:
        resident = self._resident(facts)
        return self._rescored(resident, query, _candidates(resident, query, limit, is_hidden))[
            :limit
        ]

    def held(self, facts: SpaceFacts, among: frozenset[int] | None = None) -> dict[int, int]:
        return packed.held(self._db, facts.space.id, among)

    def drop_some(self, space: int) -> bool:
        return packed.drop_some(self._db, space)

    def _rescored(
        self, resident: Resident, query: Vector, places: Sequence[int]
    ) -> list[tuple[int, float]]:
        """Return chunk keys with their float32 cosines, best first; equal ones in key order."""
        rows = {resident.rows[place] for place in places}
        found = self._db.rows(
            "SELECT id, embedding FROM embedding_cache WHERE id IN (SELECT value FROM "
            "json_each(?)) AND dims = ?",
            (as_list(rows), len(query) // 4),
        )
        scores = dict(
            zip(
                [row for row, _ in found],
                dot_products(query, [vector for _, vector in found]),
                strict=True,
            )
        )
        ranked = [
            (resident.keys[place], scores[resident.rows[place]])
            for place in places
            if resident.rows[place] in scores
        ]
        return sorted(ranked, key=lambda pair: (-pair[1], pair[0]))

    def _resident(self, facts: SpaceFacts) -> Resident:
        kept: Resident | None = self._residents.get((self._index_id, facts.space.id))
        if kept is None or kept.revision != facts.revision:
            kept = self._load(facts, kept)
            self._residents[self._index_id, facts.space.id] = kept
        return kept

    def _load(self, facts: SpaceFacts, old: Resident | None) -> Resident:
        """Read the blocks that changed since `old`, and copy the others from it."""
        space, dims = facts.space.id, facts.space.identity.dims
        heads = packed.heads(self._db, space)
        count = sum(head.used for head in heads)
        widths = {"keys": 8, "rows": 8, "int8": dims}
        buffers = {part: roomy_buffer(count * width) for part, width in widths.items()}
        sources = {"keys": old.keys, "rows": old.rows, "int8": old.codes} if old else {}
        places = _places(old.heads) if old else {}
        missing = []
        start = 0
        for head in heads:
            known = places.get((head.block, head.revision))
            for part, width in widths.items():
                into = buffers[part][start * width : (start + head.used) * width]
                if known is None:
                    missing.append((packed.row_id(space, head.block, packed.PARTS[part]), into))
                else:
                    into[:] = sources[part].cast("B")[known * width : (known + head.used) * width]
            start += head.used
        self._db.read_blobs(missing)
        codes = matrix(buffers["int8"], "b", dims) if count else memoryview(b"")
        return Resident(
            revision=facts.revision,
            heads=heads,
            keys=buffers["keys"].cast("q"),
            rows=buffers["rows"].cast("q"),
            codes=codes,
        )


def _candidates(resident: Resident, query: Vector, limit: int, is_hidden: Hidden) -> list[int]:
    """Return the positions of the entries that may be among the best, without dead and hidden
    ones."""
    count = len(resident.keys)
    if not count:
        return []
    code, scale = query_int8(query)
    scores = int8_scores(code, resident.codes)
    row_scale = scale_for(len(code))
    # Rounding lengthens a vector by at most half a step per component, so no score exceeds this.
    slack = 0.5 * math.sqrt(len(code))
    top = (scale + slack) * (row_scale + slack)
    # The rounding error is uniform, up to half a step: a deviation of 1/sqrt(12), on both sides of
    # the product.
    doubt = DEVIATIONS * math.hypot(scale, row_scale) / math.sqrt(12.0)
    wanted = limit + limit // 4 + SPARE
    while True:
        places = sorted(best_positions(scores, top, wanted), key=scores.__getitem__, reverse=True)
        del places[wanted:]
        alive = [place for place in places if resident.keys[place]]
        if is_hidden is not None:
            alive = [place for place in alive if not is_hidden(resident.keys[place])]
        floor = scores[alive[limit - 1]] - doubt if len(alive) >= limit else -math.inf
        if len(places) >= count or scores[places[-1]] < floor:
            return [place for place in alive if scores[place] >= floor]
        # Dead, hidden or equally good entries took the places of others: search deeper.
        wanted *= 4


def roomy_buffer(size: int) -> memoryview:
    """Return a zeroed buffer, in huge pages if it is large: allocating thousands of small pages
    takes longer than filling them."""
    if sys.platform != "win32" and size >= HUGE_FROM:
        advice = getattr(mmap, "MADV_HUGEPAGE", None)
        if advice is not None:
            room = mmap.mmap(
                -1, -(-size // HUGE_PAGE) * HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            )
            with suppress(OSError):
                room.madvise(advice)
            return memoryview(room)[:size]
    return memoryview(bytearray(size))


def _places(heads: Sequence[Head]) -> dict[tuple[int, int], int]:
    """Where each block begins, by number and revision."""
    places = {}
    start = 0
    for head in heads:
        places[head.block, head.revision] = start
        start += head.used
    return places
