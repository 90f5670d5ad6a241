"""The default vector engine: int8 codes in packed blocks, scanned by `simsimd`; the best are
rescored in float32.

A search loads the codes of a space once and keeps them; later searches read only changed blocks.
Blocks beyond `MOST_RESIDENT` are not kept: every search reads them from the database, one at a
time. Every code is scored. int8 loses nothing (the best 24 are among the best 40 with the shipped
models), while one bit per component with ten candidates per result lost up to 1 %.
`bench/vectors.py` measures both, and a vec0 scan.

Known limit: a space takes one byte per component in memory, 38 MB for 100,000 x 384, and 1.4 ms to
scan that; the part that is not kept takes about three times as long."""

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
"""How many candidates are considered beyond twice the requested results."""
DEVIATIONS = 6.0
"""Every candidate whose code is less than this far below the last result's is scored exactly."""
MOST_RESIDENT = 32 * 1024 * 1024
"""Bytes of codes of one space that are kept in memory between searches."""
HUGE_FROM, HUGE_PAGE = 1 << 20, 1 << 21


class Resident(NamedTuple):
    """What is kept of one space in memory: all blocks end to end."""

    revision: int
    heads: list[Head]
    keys: Buffer
    rows: Buffer
    codes: Buffer
    kept: int
    """How many blocks `codes` holds; the codes of the others are read by each search."""


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
        if not len(resident.keys):
            return []
        code, scale = query_int8(query)
        scores = self._scores(facts.space.id, resident, code)
        places = _candidates(
            resident, scores, (scale, scale_for(len(code))), len(code), limit, is_hidden
        )
        return self._rescored(resident, query, places)[:limit]

    def held(self, facts: SpaceFacts, among: frozenset[int] | None = None) -> dict[int, int]:
        return packed.held(self._db, facts.space.id, among)

    def drop_some(self, space: int) -> bool:
        return packed.drop_some(self._db, space)

    def _scores(self, space: int, resident: Resident, code: bytes) -> Buffer:
        """Return the score of every entry, also of those whose codes are not kept."""
        kept = int8_scores(code, resident.codes) if resident.kept else memoryview(b"")
        others = resident.heads[resident.kept :]
        if not others:
            return kept
        dims = len(code)
        buffer = memoryview(bytearray(max(head.used for head in others) * dims))
        wanted = [
            (packed.row_id(space, head.block, packed.PARTS["int8"]), buffer[: head.used * dims])
            for head in others
        ]
        parts = [
            bytes(int8_scores(code, matrix(codes, "b", dims)))
            for codes in self._db.read_blobs(wanted)
        ]
        return memoryview(b"".join([bytes(kept), *parts])).cast("f")

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
        kept = _kept(heads, dims)
        counts = {"keys": count, "rows": count, "int8": sum(head.used for head in heads[:kept])}
        buffers = {part: roomy_buffer(counts[part] * width) for part, width in widths.items()}
        sources = {"keys": old.keys, "rows": old.rows, "int8": old.codes} if old else {}
        places = _places(old.heads) if old else {}
        coded = {head.block for head in old.heads[: old.kept]} if old else set()
        missing = []
        start = 0
        for number, head in enumerate(heads):
            place = places.get((head.block, head.revision))
            for part, width in widths.items():
                if part == "int8" and number >= kept:
                    continue
                known = place if part != "int8" or head.block in coded else None
                into = buffers[part][start * width : (start + head.used) * width]
                if known is None:
                    missing.append((packed.row_id(space, head.block, packed.PARTS[part]), into))
                else:
                    into[:] = sources[part].cast("B")[known * width : (known + head.used) * width]
            start += head.used
        list(self._db.read_blobs(missing))
        codes = matrix(buffers["int8"], "b", dims) if kept else memoryview(b"")
        return Resident(
            revision=facts.revision,
            heads=heads,
            keys=buffers["keys"].cast("q"),
            rows=buffers["rows"].cast("q"),
            codes=codes,
            kept=kept,
        )


def _candidates(
    resident: Resident,
    scores: Buffer,
    scales: tuple[float, float],
    dims: int,
    limit: int,
    is_hidden: Hidden,
) -> list[int]:
    """Return the positions of the entries that may be among the best, without dead and hidden
    ones; `scales` are the steps per unit of the query's code and of the entries'."""
    count = len(resident.keys)
    scale, row_scale = scales
    # Rounding lengthens a vector by at most half a step per component, so no score exceeds this.
    slack = 0.5 * math.sqrt(dims)
    top = (scale + slack) * (row_scale + slack)
    # The rounding error is uniform, up to half a step: a deviation of 1/sqrt(12), on both sides of
    # the product.
    doubt = DEVIATIONS * math.hypot(scale, row_scale) / math.sqrt(12.0)
    wanted = 2 * limit + SPARE
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


def _kept(heads: Sequence[Head], dims: int) -> int:
    """Return how many blocks are kept in memory, from the first one on."""
    size = 0
    for number, head in enumerate(heads):
        size += head.used * dims
        if size > MOST_RESIDENT:
            return number
    return len(heads)


def _places(heads: Sequence[Head]) -> dict[tuple[int, int], int]:
    """Where each block begins, by number and revision."""
    places = {}
    start = 0
    for head in heads:
        places[head.block, head.revision] = start
        start += head.used
    return places
