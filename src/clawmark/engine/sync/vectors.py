"""The vector part of a sync: gives every chunk without a vector in a space one, in small batches.

What is due is read from the store each time, so a killed run continues where it stopped and pays
for nothing twice: texts that were embedded before, under any path, are taken from the cache, and a
text that is being embedded is not sent again. Calls run concurrently as far as the embedder allows,
outside the write lock; the vectors of each are committed as soon as they arrive.

Noise is what the cosines of unrelated texts are in a space. It is measured on a sample when a space
becomes ready, and again when it has grown or shrunk by half, so that ordinary changes of the memory
do not move any score."""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from clawmark.embed.base import Embedder, check_vectors
from clawmark.embed.passage import embeddable
from clawmark.engine.sync.outcome import VectorReport
from clawmark.model.errors import EmbeddingError, EmbeddingMismatch
from clawmark.model.sync_report import Progress
from clawmark.model.values import Degraded, Identity, Skipped, Space, Vector, noise_fact
from clawmark.store.base import IndexStore, Snapshot
from clawmark.store.contents import DueChunk
from clawmark.store.similarity import dot_products

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from clawmark.engine.sync.media import MediaFiles

# Batches of a local model grow while they are fast and shrink when they are slow, so that a kill
# costs about a second. Batches for a service have the size it prefers.
FIRST_BATCH, SMALLEST_BATCH, INSTANT_BATCH = 16, 4, 256
QUICK_SECONDS, SLOW_SECONDS = 0.25, 1.5
# Calls to a service shrink towards the end, so that all of them end at about the same time.
SMALLEST_CALL = 64
PAGE = 1000
WRITTEN_AT_ONCE = 1_500_000
"""Bytes of vectors that one transaction stores (about 30 ms)."""

NOISE_SAMPLE = 384
NOISE_PAIRED = 48
"""How many vectors of the sample are compared with all the others."""
FEWEST_VECTORS = 8
"""Fewer vectors than this are not measured; `search.scoring` uses the same number."""
NOISE_GROWTH = 1.5
MOST_MEDIA = 1000
"""How many images and audio files every search compares; the newest of them. Others are found if
they are among the nearest of all passages."""


class _Batch(NamedTuple):
    """Due chunks, and the texts among them that have to be embedded, by hash."""

    rows: list[DueChunk]
    missing: dict[str, str]


def fill_space(
    embedder: Embedder,
    *,
    store: IndexStore,
    progress: Callable[[Progress], None],
    out_of_time: Callable[[], bool],
    lock_timeout: float = 10.0,
    media: MediaFiles | None = None,
) -> VectorReport:
    """Give every chunk its vector, and mark the space as ready when none is due.

    `media` are the images and audio files that the embedder takes as they are."""
    try:
        identity = _known_identity(embedder)
    except EmbeddingError as error:
        with store.snapshot() as snapshot:
            chunks = snapshot.count_chunks()
        return VectorReport(due=chunks, degraded=_degraded(error))
    with store.transaction(timeout=lock_timeout) as transaction:
        space = transaction.add_space(identity)
    # Counting may take long while old rows are swept, so it is done without the write lock.
    with store.snapshot() as snapshot:
        total = snapshot.count_due(space.id)
    filling = _Filling(
        embedder=embedder,
        space=space,
        store=store,
        total=total,
        progress=progress,
        out_of_time=out_of_time,
        lock_timeout=lock_timeout,
        media=media,
    )
    degraded = filling.run()
    with store.snapshot() as snapshot:
        due = snapshot.count_due(space.id)
    if due == 0 and not space.ready:
        with store.transaction(timeout=lock_timeout) as transaction:
            transaction.set_ready(space.id)
    if due == 0:
        refresh_noise(store, space.id, lock_timeout)
        if media is not None:
            refresh_media_noise(store, space.id, media.paths.values(), lock_timeout)
    return VectorReport(
        embedded=filling.embedded,
        reused=filling.reused,
        due=due,
        degraded=degraded,
        jobs=filling.jobs,
        refused=filling.refused,
    )


class _Filling:
    """One run over the due chunks of a space."""

    def __init__(
        self,
        embedder: Embedder,
        space: Space,
        store: IndexStore,
        total: int,
        progress: Callable[[Progress], None],
        out_of_time: Callable[[], bool],
        lock_timeout: float,
        media: MediaFiles | None,
    ) -> None:
        self._embedder = embedder
        self._media = media
        self._identity = space.identity
        self._space = space.id
        self._index = store
        self._total = total
        self._progress = progress
        self._out_of_time = out_of_time
        self._lock_timeout = lock_timeout
        traits = embedder.traits
        self._at_once = traits.at_once
        self._most = traits.most_texts
        self._batch = min(INSTANT_BATCH if traits.instant else FIRST_BATCH, self._most)
        self._portion = max(1, WRITTEN_AT_ONCE // (4 * space.identity.dims))
        self._waiting: frozenset[str] = frozenset()
        self._on_the_way: set[str] = set()
        self._from_jobs: set[str] = set()
        self._done = 0
        self.embedded = self.reused = 0
        self.jobs = ""
        self.refused: tuple[Skipped, ...] = ()

    def run(self) -> Degraded | None:
        """Run until nothing is due, time is up, or the embedder fails; what was finished is
        kept."""
        failure = self._embed_media()
        self._use_batch_jobs()
        if self._at_once == 1:
            return self._passes(None) or failure

        with ThreadPoolExecutor(self._at_once, thread_name_prefix="clawmark-embed") as pool:
            return self._passes(pool) or failure

    def _passes(self, pool: ThreadPoolExecutor | None) -> Degraded | None:
        while True:
            before = self._done
            failure = self._pass(pool)
            if failure or self._done == before or self._out_of_time() or not self._is_left():
                return failure

    def _is_left(self) -> bool:
        """Return whether chunks are due; counting is faster than listing them."""
        with self._index.snapshot() as snapshot:
            return snapshot.count_due(self._space) > 0

    def _pass(self, pool: ThreadPoolExecutor | None) -> Degraded | None:
        """Go once through the due chunks in key order.

        A text that another call was embedding is found again in the next pass."""
        running: dict[Future[list[Vector]], _Batch] = {}
        failure: Degraded | None = None
        for batch in self._due():
            if pool is None or not batch.missing:
                failure = self._finish(batch, partial(self._embed_here, batch.missing))
            else:
                done = _first_done(running) if len(running) == self._at_once else None
                if done is None or done.exception() is None:
                    # Submitted before anything is stored, so that the service does not have to
                    # wait.
                    self._on_the_way.update(batch.missing)
                    running[
                        pool.submit(self._embedder.embed_texts, list(batch.missing.values()))
                    ] = batch
                failure = self._finish(running.pop(done), done.result) if done is not None else None
            if failure or (self._out_of_time() and self._done):
                break
        while running:
            done = _first_done(running)
            failure = self._finish(running.pop(done), done.result) or failure
        return failure

    def _due(self) -> Iterator[_Batch]:
        for rows in self._pages(self._size):
            fresh = [
                row
                for row in rows
                if row.hash not in self._on_the_way and row.hash not in self._waiting
            ]
            if fresh:
                yield _Batch(fresh, self._missing(fresh))

    def _pages(self, size: Callable[[int], int]) -> Iterator[list[DueChunk]]:
        """Yield the due chunks in key order, listed once: finding some of them takes as long as
        all."""
        with self._index.snapshot() as snapshot:
            keys = snapshot.due_keys(self._space)
        start = 0
        while start < len(keys):
            end = start + size(len(keys) - start)
            with self._index.snapshot() as snapshot:
                rows = snapshot.due_chunks(self._space, keys[start:end])
            yield rows
            start = end

    def _size(self, left: int) -> int:
        """The number of chunks of the next batch."""
        if self._at_once == 1:
            return self._batch
        return min(self._most, max(SMALLEST_CALL, left // (2 * self._at_once)))

    def _missing(self, rows: list[DueChunk]) -> dict[str, str]:
        files = self._media.paths if self._media is not None else {}
        return {
            text_hash: embedded
            for _, text_hash, text, vector in rows
            if vector is None
            and text_hash not in files
            and (embedded := embeddable(self._embedder, text)) is not None
        }

    def _embed_here(self, missing: dict[str, str]) -> list[Vector]:
        """Embed in this thread, and adapt the batch size to how long it took.

        A local model has its own threads."""
        if not missing:
            self._batch = min(self._most, self._batch * 2)
            return []
        started = time.monotonic()
        vectors = self._embedder.embed_texts(list(missing.values()))
        took = time.monotonic() - started
        if took < QUICK_SECONDS:
            self._batch = min(self._most, self._batch * 2)
        elif took > SLOW_SECONDS:
            self._batch = max(SMALLEST_BATCH, self._batch // 2)
        return vectors

    def _finish(self, batch: _Batch, answer: Callable[[], list[Vector]]) -> Degraded | None:
        """Commit the vectors of a batch; after a failure, at least the cached and the paid ones."""
        failure = None
        fresh: dict[str, Vector] = {}
        try:
            vectors = answer()
            if (
                not self._embedder.traits.remote
            ):  # The answers of a service are checked as they arrive.
                check_vectors(vectors, len(batch.missing), self._identity)
            fresh = dict(zip(batch.missing, vectors, strict=True))
        except EmbeddingError as error:
            failure = _degraded(error)
            fresh = self._paid(batch.missing)
        self._on_the_way.difference_update(batch.missing)
        rows = [
            (key, text_hash, vector or fresh.get(text_hash))
            for key, text_hash, _, vector in batch.rows
            if failure is None or text_hash not in batch.missing or text_hash in fresh
        ]
        for start in range(0, len(rows), self._portion):
            with self._index.transaction(timeout=self._lock_timeout) as transaction:
                transaction.put_vectors(self._space, rows[start : start + self._portion])
        self.embedded += len(fresh)
        self.reused += sum(
            vector is not None and text_hash not in self._from_jobs
            for _, text_hash, _, vector in batch.rows
        )
        self._done += len(rows)
        self._progress(
            Progress(
                stage="vectors",
                done=self._done,
                total=max(self._total, self._done),
                label=self._embedder.traits.label,
            )
        )
        return failure

    def _paid(self, missing: dict[str, str]) -> dict[str, Vector]:
        """Return vectors that a failed call of a service has already paid for, by hash."""
        take = getattr(self._embedder, "take_paid", None)
        paid = take(list(missing.values())) if take is not None else {}
        return {text_hash: paid[text] for text_hash, text in missing.items() if text in paid}

    def _embed_media(self) -> Degraded | None:
        """Embed the due images and audio files; their vectors go into the cache.

        Those that could not be sent now stay due. Those that the service refuses are recorded as
        not covered by the model, like texts in a language it does not know."""
        if self._media is None or self._out_of_time():
            return None
        files = self._media.paths
        due = [
            row.hash
            for rows in self._pages(lambda _: PAGE)
            for row in rows
            if row.hash in files and row.vector is None
        ]
        done = self._media.embed_due(due, self._store, self._out_of_time)
        self._waiting, self.refused = done.waiting, done.refused
        return _degraded(done.failure) if done.failure is not None else None

    def _use_batch_jobs(self) -> None:
        """Submit one batch job for everything that is due, if the service supports it and it is
        enabled.

        Its vectors go into the cache."""
        embed = getattr(self._embedder, "embed_in_batches", None)
        if embed is None or self._out_of_time():
            return
        texts: dict[str, str] = {}
        for rows in self._pages(lambda _: PAGE):
            texts |= self._missing(rows)
        if texts:
            pending, self.jobs = embed(texts, self._store, self._show)
            self._waiting |= pending
            if pending and not self.jobs:
                count = f"{len(pending):,} texts"
                self.jobs = (
                    f"{count} are on their way in a batch job; a later `clawmark index` has them."
                )

    def _store(self, vectors: dict[str, Vector]) -> None:
        rows = list(vectors.items())
        for start in range(0, len(rows), self._portion):
            with self._index.transaction(timeout=self._lock_timeout) as transaction:
                transaction.cache_vectors(self._identity, dict(rows[start : start + self._portion]))
        self._from_jobs.update(vectors)
        self.embedded += len(vectors)

    def _show(self, done: int, total: int) -> None:
        self._progress(
            Progress(
                stage="vectors",
                done=done,
                total=total,
                label=f"{self._embedder.traits.label}, batch job",
            )
        )


def _degraded(error: EmbeddingError) -> Degraded:
    return Degraded(error.message, error.hint, needs_change=isinstance(error, EmbeddingMismatch))


def _first_done(running: Iterable[Future[list[Vector]]]) -> Future[list[Vector]]:
    """Wait until one of these calls has ended; of several, return the oldest."""
    calls = list(running)
    done = wait(calls, return_when=FIRST_COMPLETED).done
    return next(call for call in calls if call in done)


def _known_identity(embedder: Embedder) -> Identity:
    """Return the identity with its dimensions, which a service may only report with its first
    answer."""
    if not embedder.identity.dims:
        embedder.embed_texts(["size"])
    return embedder.identity


# --- noise --------------------------------------------------------------------------------------


def refresh_noise(store: IndexStore, space: int, lock_timeout: float) -> None:
    """Measure a space that has not been measured at about its present size."""
    with store.snapshot() as snapshot:
        facts = due_noise(snapshot, space)
    if facts:
        _store_noise(store, space, facts, lock_timeout)


def due_noise(snapshot: Snapshot, space: int) -> dict[str, object]:
    """Return the noise of a space that has not been measured at about its present size; empty if
    it has, or if it is too small."""
    vectors = next((known.vectors for known in snapshot.spaces() if known.id == space), 0)
    measured = int(snapshot.facts(noise_fact(space)).get("passages", 0))
    if vectors < FEWEST_VECTORS or measured / NOISE_GROWTH < vectors < measured * NOISE_GROWTH:
        return {}
    sample = snapshot.sample_vectors(space, NOISE_SAMPLE)
    if len(sample) < FEWEST_VECTORS:
        return {}
    centre, spread = measure_noise(sample)
    return {"centre": centre.hex(), "spread": round(spread, 6), "passages": vectors}


def refresh_media_noise(
    store: IndexStore, space: int, paths: Iterable[str], lock_timeout: float
) -> None:
    """Measure the images and audio files of a space, if they are others than last time.

    Their vectors lie apart from those of texts, so they are compared with each other."""
    with store.snapshot() as snapshot:
        known = snapshot.facts(noise_fact(space))
        keys = sorted(chunk.key for path in paths for chunk in snapshot.chunks_of(path))
        keys = keys[-MOST_MEDIA:]
        if not known or known.get("media", {}).get("keys") == keys:
            return
        rows = snapshot.due_chunks(space, keys)
    vectors = [row.vector for row in rows if row.vector is not None]
    if len(vectors) < 2:
        return
    _, spread = measure_noise(vectors[:: -(-len(vectors) // NOISE_SAMPLE)])
    measured = {"spread": round(spread, 6), "keys": keys}
    _store_noise(store, space, {"media": measured}, lock_timeout)


def _store_noise(
    store: IndexStore, space: int, facts: dict[str, object], lock_timeout: float
) -> None:
    """Store facts next to what is known about the noise of a space, if it still exists."""
    with store.transaction(timeout=lock_timeout) as transaction:
        if any(known.id == space for known in transaction.spaces()):
            known = transaction.facts(noise_fact(space))
            transaction.set_facts(noise_fact(space), known | facts)


def measure_noise(sample: Sequence[Vector]) -> tuple[Vector, float]:
    """Return the mean of some unit vectors, and the standard deviation of their cosines around each
    one's own mean."""
    rows = [memoryview(vector).cast("f") for vector in sample]
    centre = array("f", [sum(column) / len(rows) for column in zip(*rows, strict=True)]).tobytes()
    step = max(1, len(sample) // NOISE_PAIRED)
    squares = count = 0.0
    for number in range(0, len(sample), step):
        others = dot_products(sample[number], [*sample[:number], *sample[number + 1 :]])
        mean = sum(others) / len(others)
        squares += sum([(cosine - mean) ** 2 for cosine in others])
        count += len(others)
    return centre, max(1e-3, math.sqrt(squares / count))
