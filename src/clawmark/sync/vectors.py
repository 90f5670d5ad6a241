"""Carries out the vector half: every chunk that has no vector in a space gets one, in small resumable batches.

What is due is asked of the index each time, so a killed run goes on where it stopped and pays for nothing twice: texts that
were embedded before, under any path, are taken from the cache, and a text that is on its way is not sent again. Calls run
side by side as far as the embedder likes; each one's vectors are committed as soon as it is their turn. Embedding happens
outside the lock.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from clawmark.embed.base import Embedder, check_vectors
from clawmark.errors import EmbeddingError
from clawmark.index.store import Index
from clawmark.reports import Progress
from clawmark.sync.outcome import VectorReport
from clawmark.types import Degraded, Identity, Vector

# Batches of a local model grow while they are quick and shrink when they are slow, so that a kill or a busy neighbour costs
# about a second; those of a service have the size it likes.
FIRST_BATCH, SMALLEST_BATCH = 16, 4
QUICK_SECONDS, SLOW_SECONDS = 0.25, 1.5
# One call waits in line behind those that run, so that none of them idles while vectors are written.
IN_LINE = 1
PAGE = 1000

Row = tuple[int, str, str]


class _Call(NamedTuple):
    """A batch on its way: its rows, what the cache had of them, and the texts that were sent."""

    rows: list[Row]
    known: dict[str, Vector]
    missing: dict[str, str]
    answer: Future[list[Vector]]


def fill_space(
    embedder: Embedder,
    *,
    index: Index,
    progress: Callable[[Progress], None],
    out_of_time: Callable[[], bool],
    lock_timeout: float = 10.0,
) -> VectorReport:
    """Give every chunk its vector; marks the space ready when none is due any more."""
    try:
        identity = _known_identity(embedder)
    except EmbeddingError as error:
        with index.reading() as reader:
            return VectorReport(0, 0, reader.state().chunks, Degraded(error.message, error.hint))
    with index.writing(timeout=lock_timeout) as writer:
        space = writer.space(identity)
        total = writer.count_due_vectors(space.id)
    filling = _Filling(embedder, identity, space.id, index, total, progress, out_of_time, lock_timeout)
    degraded = filling.run()
    with index.writing(timeout=lock_timeout) as writer:
        due = writer.count_due_vectors(space.id)
        if due == 0 and not space.ready:
            writer.set_ready(space.id)
    return VectorReport(filling.embedded, filling.reused, due, degraded)


class _Filling:
    """One run over the due chunks of a space."""

    def __init__(
        self,
        embedder: Embedder,
        identity: Identity,
        space: int,
        index: Index,
        total: int,
        progress: Callable[[Progress], None],
        out_of_time: Callable[[], bool],
        lock_timeout: float,
    ) -> None:
        self._embedder = embedder
        self._identity = identity
        self._space = space
        self._index = index
        self._total = total
        self._progress = progress
        self._out_of_time = out_of_time
        self._lock_timeout = lock_timeout
        traits = embedder.traits
        self._at_once = traits.at_once
        self._most = traits.most_texts
        self._batch = min(FIRST_BATCH, self._most) if self._at_once == 1 else self._most
        self._waiting: frozenset[str] = frozenset()
        self._on_the_way: set[str] = set()
        self._done = 0
        self.embedded = self.reused = 0

    def run(self) -> Degraded | None:
        """Until nothing is due, time is up, or the embedder fails; what was finished before that is kept."""
        self._use_batch_jobs()
        with ThreadPoolExecutor(self._at_once, thread_name_prefix="clawmark-embed") as pool:
            while True:
                before = self._done
                failure = self._pass(pool)
                if failure or self._done == before or self._out_of_time():
                    return failure

    def _pass(self, pool: ThreadPoolExecutor) -> Degraded | None:
        """Once through the due chunks in key order; a text that was on its way is found again in the next pass."""
        calls: deque[_Call] = deque()
        due = self._due()
        failure: Degraded | None = None
        more = True
        while more or calls:
            while more and len(calls) < self._at_once + (IN_LINE if self._at_once > 1 else 0):
                rows = next(due, None) if failure is None and not (self._out_of_time() and self._done) else None
                if rows is None:
                    more = False
                    break
                calls.append(self._start(rows, pool))
            if calls:
                failure = self._finish(calls.popleft()) or failure
        return failure

    def _due(self) -> Iterator[list[Row]]:
        after = 0
        while True:
            with self._index.reading() as reader:
                rows = reader.due_vectors(self._space, self._batch, after)
            if not rows:
                return
            after = rows[-1][0]
            fresh = [row for row in rows if row[1] not in self._on_the_way and row[1] not in self._waiting]
            if fresh:
                yield fresh

    def _start(self, rows: list[Row], pool: ThreadPoolExecutor) -> _Call:
        with self._index.reading() as reader:
            known = reader.cached(self._identity, [text_hash for _, text_hash, _ in rows])
        missing = {text_hash: text for _, text_hash, text in rows if text_hash not in known and self._embedder.covers(text)}
        self._on_the_way.update(missing)
        answer: Future[list[Vector]] = Future()
        if not missing:
            answer.set_result([])
        elif self._at_once > 1:
            answer = pool.submit(self._embedder.embed_texts, list(missing.values()))
        else:
            self._embed_here(missing, answer)
        return _Call(rows, known, missing, answer)

    def _embed_here(self, missing: dict[str, str], answer: Future[list[Vector]]) -> None:
        """A local model has its own threads; its batches are sized by how long the last one took."""
        started = time.monotonic()
        try:
            answer.set_result(self._embedder.embed_texts(list(missing.values())))
        except EmbeddingError as error:
            answer.set_exception(error)
        took = time.monotonic() - started
        if took < QUICK_SECONDS:
            self._batch = min(self._most, self._batch * 2)
        elif took > SLOW_SECONDS:
            self._batch = max(SMALLEST_BATCH, self._batch // 2)

    def _finish(self, call: _Call) -> Degraded | None:
        """Commit a call's vectors; after a failure at least those the cache had."""
        failure = None
        fresh: dict[str, Vector] = {}
        try:
            vectors = call.answer.result()
            if not self._embedder.traits.remote:  # a service's answers are checked as they come in
                check_vectors(vectors, len(call.missing), self._identity)
            fresh = dict(zip(call.missing, vectors, strict=True))
        except EmbeddingError as error:
            failure = Degraded(error.message, error.hint)
        self._on_the_way.difference_update(call.missing)
        rows: list[tuple[int, str, Vector | None]] = [
            (key, text_hash, call.known.get(text_hash) or fresh.get(text_hash))
            for key, text_hash, _ in call.rows
            if failure is None or text_hash not in call.missing
        ]
        if rows:
            with self._index.writing(timeout=self._lock_timeout) as writer:
                writer.put_vectors(self._space, rows)
        self.embedded += len(fresh)
        self.reused += sum(text_hash in call.known for _, text_hash, _ in rows)
        self._done += len(rows)
        self._progress(Progress("vectors", self._done, max(self._total, self._done), self._embedder.traits.label))
        return failure

    def _use_batch_jobs(self) -> None:
        """Where a service has them and they are switched on: one job for all that is due; its vectors land in the cache."""
        embed = getattr(self._embedder, "embed_in_batches", None)
        if embed is None or self._out_of_time():
            return
        texts: dict[str, str] = {}
        after = 0
        while True:
            with self._index.reading() as reader:
                rows = reader.due_vectors(self._space, PAGE, after)
                known = reader.cached(self._identity, [text_hash for _, text_hash, _ in rows])
            if not rows:
                break
            after = rows[-1][0]
            texts |= {
                text_hash: text for _, text_hash, text in rows if text_hash not in known and self._embedder.covers(text)
            }
        if texts:
            self._waiting, _ = embed(texts, self._store, self._show)

    def _store(self, vectors: dict[str, Vector]) -> None:
        with self._index.writing(timeout=self._lock_timeout) as writer:
            writer.put_cached(self._identity, vectors)

    def _show(self, done: int, total: int) -> None:
        self._progress(Progress("vectors", done, total, f"{self._embedder.traits.label}, batch job"))


def _known_identity(embedder: Embedder) -> Identity:
    """The identity with its dims, which a service may only tell with its first answer."""
    if not embedder.identity.dims:
        embedder.embed_texts(["size"])
    return embedder.identity
