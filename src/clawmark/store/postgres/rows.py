"""Rows of the tables as values: the state of an index, its vector spaces, files and chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from clawmark.model.errors import IndexStoreError
from clawmark.model.values import ChunkRow, FileRow, Space


class IndexRow(NamedTuple):
    """The row of an index: which edition answers, and what the next keys are."""

    index_id: int
    generation: int
    building: int
    last_built: int
    building_identity: str
    next_key: int
    next_space: int


NO_INDEX = IndexRow(
    index_id=0,
    generation=1,
    building=0,
    last_built=1,
    building_identity="{}",
    next_key=1,
    next_space=1,
)


class Held(NamedTuple):
    """A vector space, and by edition how many chunks it covers and how many it does not."""

    space: Space
    vectors: dict[int, int]
    uncovered: dict[int, int]


class Ended:
    """Takes the place of the connection when a snapshot has ended."""

    def __getattr__(self, name: str) -> Any:
        raise IndexStoreError(
            "This snapshot of the index has ended.", hint="Open another one with `snapshot()`."
        )


def file_row(row: Sequence[Any]) -> FileRow:
    return FileRow._make((*row[:5], int(row[5]), int(row[6]), *row[7:]))


def chunk_row(row: Sequence[Any]) -> ChunkRow:
    return ChunkRow._make(
        (*row[:5], bytes(row[5]).hex(), bytes(row[6]).decode(), bytes(row[7]).decode(), *row[8:])
    )
