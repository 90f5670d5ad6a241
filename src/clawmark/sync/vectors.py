"""Carries out the vector half: every chunk that has no vector in a space gets one, in small resumable batches.

What is due is asked of the index each time, so a killed run goes on where it stopped and pays for nothing twice: texts
that were embedded before, under any path, are taken from the cache. Embedding happens outside the lock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from clawmark.embed.base import Embedder, check_vectors
from clawmark.errors import EmbeddingError
from clawmark.index.store import Index
from clawmark.types import Degraded, Progress, Vector

# Batches grow while they are quick and shrink when they are slow, so that a kill or a busy neighbour costs about a second.
FIRST_BATCH, SMALLEST_BATCH, LARGEST_BATCH = 16, 4, 1024
QUICK_SECONDS, SLOW_SECONDS = 0.25, 1.5


class VectorReport(NamedTuple):
    """What filling one space did."""

    embedded: int
    reused: int
    due: int
    degraded: Degraded | None


def fill_space(
    embedder: Embedder,
    *,
    index: Index,
    progress: Callable[[Progress], None],
    out_of_time: Callable[[], bool],
    lock_timeout: float = 10.0,
) -> VectorReport:
    """Give every chunk its vector; marks the space ready when none is due any more."""
    identity = embedder.identity
    if _is_complete(index, embedder):
        return VectorReport(0, 0, 0, None)
    with index.writing(timeout=lock_timeout) as writer:
        space = writer.space(identity)
        total = writer.count_due_vectors(space.id)
    embedded = reused = 0
    batch = FIRST_BATCH
    due = total
    while due and not (out_of_time() and embedded + reused):
        with index.reading() as reader:
            rows = reader.due_vectors(space.id, batch)
            known = reader.cached(identity, [hash_ for _, hash_, _ in rows])
        if not rows:
            due = 0
            break
        missing = {hash_: text for _, hash_, text in rows if hash_ not in known and embedder.covers(text)}
        started = time.monotonic()
        try:
            vectors = embedder.embed_texts(list(missing.values())) if missing else []
            check_vectors(vectors, len(missing), identity)
        except EmbeddingError as error:
            return VectorReport(embedded, reused, due, Degraded(error.message, error.hint))
        took = time.monotonic() - started
        fresh = dict(zip(missing, vectors, strict=True))
        ready: list[tuple[int, str, Vector | None]] = [
            (key, hash_, known.get(hash_) or fresh.get(hash_)) for key, hash_, _ in rows
        ]
        with index.writing(timeout=lock_timeout) as writer:
            writer.put_vectors(space.id, ready)
        embedded += len(fresh)
        reused += sum(hash_ in known for _, hash_, _ in rows)
        due -= len(rows)
        progress(Progress("vectors", total - due, total, embedder.traits.label))
        if took < QUICK_SECONDS:
            batch = min(LARGEST_BATCH, batch * 2)
        elif took > SLOW_SECONDS:
            batch = max(SMALLEST_BATCH, batch // 2)
    with index.writing(timeout=lock_timeout) as writer:
        due = writer.count_due_vectors(space.id)
        if due == 0 and not space.ready:
            writer.set_ready(space.id)
    return VectorReport(embedded, reused, due, None)


def _is_complete(index: Index, embedder: Embedder) -> bool:
    """Asked without the lock, so that a sync with nothing to do writes nothing."""
    with index.reading() as reader:
        spaces = [space for space in reader.state().spaces if space.identity == embedder.identity]
        return bool(spaces) and spaces[0].ready and reader.count_due_vectors(spaces[0].id) == 0
