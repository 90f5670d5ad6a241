"""Measures what cosines are by chance in a vector space, so that any model's similarities can be
judged.

Takes an index and a space; stores the mean of a sample of its vectors and the spread of the cosines
between them. It is measured when a space becomes ready and again when the space has grown or shrunk
by half, so that ordinary changes of the memory do not move any score."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

from clawmark.model.values import Vector
from clawmark.store.base import IndexStore, noise_fact
from clawmark.store.similarity import dot_products

SAMPLE = 384
PAIRED = 48
"""How many vectors of the sample are compared with all the others."""
FEWEST = 8
"""Fewer vectors than this say nothing about chance; `search.scoring` knows the same number."""
GROWTH = 1.5


def refresh_noise(store: IndexStore, space: int, lock_timeout: float) -> None:
    """Measure a space that has never been measured, or not since it had another size."""
    with store.snapshot() as snapshot:
        vectors = next((known.vectors for known in snapshot.spaces() if known.id == space), 0)
        measured = int(snapshot.facts(noise_fact(space)).get("passages", 0))
        if vectors < FEWEST or measured / GROWTH < vectors < measured * GROWTH:
            return
        sample = snapshot.sample_vectors(space, SAMPLE)
    if len(sample) < FEWEST:
        return
    centre, spread = measure(sample)
    facts = {"centre": centre.hex(), "spread": round(spread, 6), "passages": vectors}
    with store.transaction(timeout=lock_timeout) as transaction:
        if any(known.id == space for known in transaction.spaces()):
            transaction.set_facts(noise_fact(space), facts)


def measure(sample: Sequence[Vector]) -> tuple[Vector, float]:
    """The mean of some unit vectors, and the standard deviation of their cosines around each one's
    own mean.
    """
    rows = [memoryview(vector).cast("f") for vector in sample]
    centre = array("f", [sum(column) / len(rows) for column in zip(*rows, strict=True)]).tobytes()
    step = max(1, len(sample) // PAIRED)
    squares = count = 0.0
    for number in range(0, len(sample), step):
        others = dot_products(sample[number], [*sample[:number], *sample[number + 1 :]])
        mean = sum(others) / len(others)
        squares += sum([(cosine - mean) ** 2 for cosine in others])
        count += len(others)
    return centre, max(1e-3, math.sqrt(squares / count))
