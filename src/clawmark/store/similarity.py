"""Cosines of packed float32 vectors, computed by `simsimd`: fast, and without numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import simsimd

from clawmark.model.values import Vector

Buffer = Any
"""Anything simsimd reads: a memoryview of bytes, or one of its own tensors."""


def dot_products(query: Vector, vectors: Sequence[Vector]) -> list[float]:
    """Return the dot products of unit vectors in float32, which are their cosines."""
    return list(_compare(query, vectors, "dot"))


def cosines(query: Vector, vectors: Sequence[Vector]) -> list[float]:
    """Return the cosines of a query and vectors of any length."""
    return [1.0 - distance for distance in _compare(query, vectors, "cosine")]


def _compare(
    query: Vector, vectors: Sequence[Vector], metric: Literal["dot", "cosine"]
) -> Sequence[float]:
    if not vectors:
        return ()
    dims = len(query) // 4
    many = matrix(b"".join(vectors), "f", dims)
    found = simsimd.cdist(matrix(query, "f", dims), many, metric=metric, out_dtype="float32")
    return list(floats_of(found))


def matrix(data: bytes | bytearray | memoryview, kind: str, dims: int) -> Buffer:
    """Return a buffer as rows of `dims` numbers: kind `f` for float32, `b` for int8."""
    flat: Any = memoryview(data).cast("B")
    size = 4 if kind == "f" else 1
    return flat.cast(kind, shape=[len(flat) // (dims * size), dims])


def floats_of(buffer: Buffer) -> Buffer:
    """Return a buffer or a tensor as a flat row of float32."""
    return memoryview(buffer).cast("B").cast("f")
