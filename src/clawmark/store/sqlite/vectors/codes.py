"""Encodes vectors as int8 and finds the best of many scores, at the speed of C and without numpy.

`simsimd` computes scores; its pairwise functions also round and shift whole buffers, which is all
that encoding needs. The code of a component is its value in steps of 1/127 of a fixed limit. Codes
only select candidates, which are then scored in float32."""

from __future__ import annotations

import math
from array import array

import simsimd

from clawmark.model.values import Vector
from clawmark.store.similarity import Buffer, floats_of, matrix

SAMPLE = 1024
"""How many scores are sampled to estimate where the best ones begin."""
PIECE = 1 << 14
"""Components or scores handled at a time: intermediate results stay in the processor's cache."""
_TWO_TO_23 = 8388608.0


def scale_for(dims: int) -> float:
    """Return how many steps make 1.

    Components of a unit vector are about 1/sqrt(dims); twelve times that is clipped."""
    return 127.0 / min(1.0, 12.0 / math.sqrt(dims))


def to_int8(vectors: bytes, scale: float) -> bytes:
    """Return the int8 codes of float32 vectors, one byte per component."""
    components = memoryview(vectors).cast("f")
    return b"".join(
        [
            _codes(components[start : start + PIECE], scale)
            for start in range(0, len(components), PIECE)
        ]
    )


def query_int8(query: Vector) -> tuple[bytes, float]:
    """Return the code of a query with a scale of its own, which loses least."""
    largest = max(map(abs, memoryview(query).cast("f")))
    scale = 127.0 / largest if largest else 1.0
    return to_int8(query, scale), scale


def int8_scores(query: bytes, codes: Buffer) -> Buffer:
    """Return the dot products of one int8 code with many."""
    return floats_of(
        simsimd.cdist(matrix(query, "b", len(query)), codes, metric="dot", out_dtype="float32")
    )


def best_positions(scores: Buffer, top: float, wanted: int) -> list[int]:
    """Return the positions of the `wanted` highest scores, unordered, and possibly a few more; all
    must lie in -top..top.

    Scores are shifted so that float32 holds them as integers, 2^23 + 32768 + score: the second byte
    of such a float is the score in 256 levels. A sample shows which level about `wanted` of them
    reach, and `bytes` finds these at once."""
    count = len(scores)
    if wanted >= count:
        return list(range(count))
    levels = b"".join(
        [_levels(scores[start : start + PIECE], top) for start in range(0, count, PIECE)]
    )
    sample = levels[:: max(1, count // SAMPLE)]
    level = max(sample)
    seen = sample.count(level)
    while seen < wanted * len(sample) // count + 3 and level > 0:
        level -= 1
        seen += sample.count(level)
    while True:
        places = positions_of(levels.translate(bytes(level) + b"\1" * (256 - level)))
        if level == 0 or len(places) >= wanted:
            return places
        level -= 1


def _levels(scores: Buffer, top: float) -> bytes:
    ones = memoryview(array("f", [1.0]) * len(scores))
    shifted = simsimd.wsum(scores, ones, alpha=32000.0 / top, beta=_TWO_TO_23 + 32768.0)
    return _bytes_of(shifted)[1::4]


def positions_of(marks: bytes) -> list[int]:
    """Return the positions of bytes that are 1."""
    found = []
    position = marks.find(1)
    while position >= 0:
        found.append(position)
        position = marks.find(1, position + 1)
    return found


def _codes(components: Buffer, scale: float) -> bytes:
    codes = bytearray(_rounded(components, scale))
    # Values beyond the limit wrapped around. Scaled so that 127.49 becomes 0.5, they do not round
    # to 0.
    beyond = _rounded(components, scale * 0.5 / 127.49)
    if beyond.count(0) != len(beyond):
        for position in positions_of(beyond.translate(bytes(1) + b"\1" * 255)):
            codes[position] = 127 if components[position] > 0 else 129
    return bytes(codes)


def _rounded(components: Buffer, scale: float) -> bytes:
    """Multiply by `scale` and round to int8: next to 1.5 * 2^23 a float32 has no fraction, and its
    lowest byte is the number's."""
    ones = memoryview(array("f", [1.0]) * len(components))
    return _bytes_of(simsimd.wsum(components, ones, alpha=scale, beta=1.5 * _TWO_TO_23))[::4]


def _bytes_of(tensor: Buffer) -> bytes:
    return bytes(memoryview(tensor).cast("B"))
