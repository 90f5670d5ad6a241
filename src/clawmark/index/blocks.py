"""The default vector engine: int8 codes in packed blocks, scanned by `simsimd`, the best rescored in float32.

A search loads the codes of a space once and keeps them; later searches read only blocks that changed. Every code is
scored: int8 loses nothing (the best 24 are among the best 40 on the shipped models), while one bit per component with
forty candidates per result lost up to 1 % of them. `bench/vectors.py` measures both, and a vec0 scan beside them.

Known limit: a space takes one byte per component in memory, 38 MB for 100,000 x 384, and 1.4 ms to scan that.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from typing import NamedTuple

from clawmark.index import packed
from clawmark.index.codes import (
    Buffer,
    best_positions,
    exact_scores,
    int8_scores,
    matrix,
    query_int8,
    scale_for,
    to_int8,
)
from clawmark.index.db import Database, as_list
from clawmark.index.meta import SpaceFacts
from clawmark.index.packed import Head
from clawmark.index.vectors import Entry, Residents
from clawmark.types import Vector

SPARE = 32
"""Half as many candidates again as results asked for, and so many more, are scored exactly."""


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
        packed.add_uncovered(self._db, space, facts.revision, [entry.key for entry in entries if entry.vector is None])
        if not covered:
            return
        codes = to_int8(b"".join([entry.vector for entry in covered if entry.vector is not None]), scale_for(dims))
        parts = {
            "keys": array("q", [entry.key for entry in covered]).tobytes(),
            "rows": array("q", [entry.row for entry in covered]).tobytes(),
            "int8": codes,
        }
        packed.append(self._db, space, facts.revision, parts)

    def remove(self, facts: SpaceFacts, keys: frozenset[int]) -> tuple[int, int]:
        space, dims = facts.space.id, facts.space.identity.dims
        removed = packed.remove(self._db, space, facts.revision, keys, {"keys": 8, "rows": 8, "int8": dims})
        return removed, packed.remove_uncovered(self._db, space, facts.revision, keys)

    def nearest(
        self, facts: SpaceFacts, query: Vector, limit: int, is_hidden: Callable[[int], bool]
    ) -> list[tuple[int, float]]:
        resident = self._resident(facts)
        count = len(resident.keys)
        enough = limit * 3 // 2
        wanted = enough + SPARE
        while True:
            positions = _candidates(resident, query, wanted)
            alive = [place for place in positions if resident.keys[place] and not is_hidden(resident.keys[place])]
            if len(alive) >= enough or wanted >= count:
                break
            # Dead and hidden entries crowded the good ones out: look deeper.
            wanted *= 4
        return self._rescored(resident, query, alive)[:limit]

    def held(self, facts: SpaceFacts, among: frozenset[int] | None = None) -> dict[int, int]:
        return packed.held(self._db, facts.space.id, among)

    def drop(self, facts: SpaceFacts) -> None:
        packed.drop(self._db, facts.space.id)
        self._residents.pop((self._index_id, facts.space.id), None)

    def _rescored(self, resident: Resident, query: Vector, places: Sequence[int]) -> list[tuple[int, float]]:
        """Chunk keys with their float32 cosines, best first; equal ones in the order of their keys."""
        rows = {resident.rows[place] for place in places}
        found = self._db.rows(
            "SELECT id, embedding FROM embedding_cache WHERE id IN (SELECT value FROM json_each(?)) AND dims = ?",
            (as_list(rows), len(query) // 4),
        )
        scores = dict(zip([row for row, _ in found], exact_scores(query, [vector for _, vector in found]), strict=True))
        ranked = [
            (resident.keys[place], scores[resident.rows[place]]) for place in places if resident.rows[place] in scores
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
        buffers = {part: memoryview(bytearray(count * width)) for part, width in widths.items()}
        sources = {"keys": old.keys, "rows": old.rows, "int8": old.codes} if old else {}
        places = _places(old.heads) if old else {}
        start = 0
        for head in heads:
            known = places.get((head.block, head.revision))
            for part, width in widths.items():
                into = buffers[part][start * width : (start + head.used) * width]
                if known is None:
                    self._db.read_blob(packed.row_id(space, head.block, packed.PARTS[part]), into)
                else:
                    into[:] = sources[part].cast("B")[known * width : (known + head.used) * width]
            start += head.used
        codes = matrix(buffers["int8"], "b", dims) if count else memoryview(b"")
        return Resident(facts.revision, heads, buffers["keys"].cast("q"), buffers["rows"].cast("q"), codes)


def _candidates(resident: Resident, query: Vector, wanted: int) -> list[int]:
    """Places of the entries that look best by their codes, best first."""
    if not len(resident.keys):
        return []
    code, scale = query_int8(query)
    scores = int8_scores(code, resident.codes)
    # Rounding lengthens a vector by at most half a step per component, so no score lies beyond this.
    slack = 0.5 * math.sqrt(len(code))
    places = best_positions(scores, (scale + slack) * (scale_for(len(code)) + slack), wanted)
    return sorted(places, key=scores.__getitem__, reverse=True)[:wanted]


def _places(heads: Sequence[Head]) -> dict[tuple[int, int], int]:
    """Where each block begins, by number and revision."""
    places = {}
    start = 0
    for head in heads:
        places[head.block, head.revision] = start
        start += head.used
    return places
