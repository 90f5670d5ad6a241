"""The built-in backend: a workspace, its SQLite index and the embedders.

It owns its parts: closing it closes the index and the workspace. A search brings the index up to
date first, within a time budget; only `sync` does unbounded work."""

from __future__ import annotations

import os
import time
from _thread import RLock, allocate_lock  # without `threading`, which costs a cold search 1 ms
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from clawmark.backends.freshener import Freshener
from clawmark.backends.freshening import LOOK_SECONDS
from clawmark.backends.hit_check import changed_files, standing_hits
from clawmark.backends.snapshot import HeldSnapshot
from clawmark.embed.base import Embedder
from clawmark.engine.maintenance.repair import heal, healing
from clawmark.engine.parts import IndexParts, answering_embedders, count_due_vectors, refusal_of
from clawmark.engine.sync.scan import SyncParts, SyncRequest
from clawmark.model.errors import IndexDamaged, IndexFromTheFuture
from clawmark.model.values import (
    ChunkRow,
    Degraded,
    FileStat,
    Found,
    Freshness,
    Identity,
    NothingFound,
    Query,
    Scan,
    SyncPlan,
)
from clawmark.system.cancellation import check_cancelled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clawmark.backends.background import Background
    from clawmark.engine.search.legs import Asked
    from clawmark.engine.search.why_not import Judging
    from clawmark.engine.versions.background_recorder import BackgroundRecorder
    from clawmark.engine.versions.recorder import VersionRecorder
    from clawmark.model.documents import Excerpt
    from clawmark.model.reports import Probe, Status
    from clawmark.model.sync_report import Progress, SyncReport
    from clawmark.store.base import Snapshot

T = TypeVar("T")
ATTEMPTS = 5
"""How often a search is repeated because its index was deleted or replaced while it ran."""
MATCHES_CHANGED = NothingFound(
    "still-indexing",
    "The files that matched have changed or are gone, and the index has not caught up yet.",
    None,
)


class BuiltinBackend:
    """Search, read and sync over one workspace; a `MemoryBackend`."""

    def __init__(
        self,
        parts: IndexParts,
        *,
        freshen: bool,
        background: bool = False,
        debounce: float = 1.5,
        interval: float = 0.0,
        make_recorder: Callable[[], VersionRecorder | None] | None = None,
        is_recorded: Callable[[Scan], bool] = lambda _: False,
    ) -> None:
        """`make_recorder` makes what records the versions of the files, when that is needed;
        `is_recorded` says of the files of a scan that they are recorded."""
        self.parts = parts
        self._make_recorder, self._is_recorded = make_recorder, is_recorded
        self._recording: BackgroundRecorder | None = None
        self._making_recording = allocate_lock()
        self._freshens = freshen
        self._debounce, self._interval = debounce, interval
        self._revived: dict[Identity, Embedder | None] = {}
        self._syncing = RLock()
        self.after_sync: Callable[[SyncReport, Scan, SyncRequest], SyncReport] | None = None
        """Called after each complete look at the files; it may add to the report."""
        self._background: Background | None = None
        self.freshener = Freshener(parts, lambda: self._background, self.note_change)
        if background:
            parts.workspace.on_change = self.note_change
            self.background()

    def search(self, query: Query, *, freshen: bool = True) -> Found:
        """Answer a query; an index that cannot be used is replaced and filled within the budget."""
        try:
            return self._answer(query, freshen=freshen and self._freshens)
        except (IndexDamaged, IndexFromTheFuture) as error:
            broken = error
        what = heal(self.parts.store, broken)
        self.freshener.expire()
        found, again = healing(self.parts.store, lambda: self._answer(query, freshen=True))
        if not (what or again):
            return found
        due = found.due_files
        fix = f"Files due: {due}; `clawmark index` finishes it." if due else ""
        return found._replace(degraded=Degraded(what or again, fix))

    def _answer(self, query: Query, *, freshen: bool) -> Found:
        # Imported late, here and in `_ask` and `_find`: a sync does without the search pipeline.
        from clawmark.text.keywords.query import clean_query

        store = self.parts.store
        query = query._replace(text=clean_query(query.text))
        for _ in range(ATTEMPTS):
            mark = store.mark()
            with HeldSnapshot(store) as snapshot:
                found = self._answer_once(query, snapshot, freshen=freshen)
            # An index that is deleted between the look and the answer must not pass for an empty
            # one.
            if not store.was_replaced(mark):
                break
            self.freshener.expire()
        return found

    def _answer_once(self, query: Query, snapshot: HeldSnapshot, *, freshen: bool) -> Found:
        check_cancelled()
        freshener = self.freshener
        freshen = freshen or freshener.is_replaced()
        freshness = (
            freshener.freshen(snapshot)
            if freshen
            else Freshness(freshener.known_due(), "not asked for", 0.0)
        )
        check_cancelled()
        asked_at = freshener.clock()
        asked = self._ask(query.text, snapshot)
        if freshen and freshener.clock() - asked_at > LOOK_SECONDS:
            freshness = freshener.freshen(snapshot)  # the embedder was slow
        found, changed = self._find(query, asked, freshness, snapshot)
        if changed and freshen and not freshness.due_files:
            # Files changed after the look.
            freshness = freshener.freshen(snapshot, now=True)
            found, changed = self._find(query, asked, freshness, snapshot)
        return self._without_stale(found, changed, snapshot) if changed else found

    def _ask(self, text: str, snapshot: HeldSnapshot) -> Asked:
        """Embed the query with the embedders whose vectors the index has."""
        from clawmark.engine.search.legs import ask

        if not text or not self.parts.embedders:
            return ask(text, (), ())
        began = time.perf_counter()
        spaces = snapshot.reader.spaces()
        embedders = answering_embedders(self.parts, spaces, self._revived)
        if any(embedder.traits.remote for embedder in embedders):
            snapshot.release()
        return ask(text, embedders, spaces)._replace(
            milliseconds=(time.perf_counter() - began) * 1000
        )

    def _find(
        self, query: Query, asked: Asked, freshness: Freshness, snapshot: HeldSnapshot
    ) -> tuple[Found, list[str]]:
        """Return the answer from one snapshot, and which files of its hits have changed since they
        were indexed.
        """
        from clawmark.engine.search.pipeline import search

        check_cancelled()
        reader = snapshot.reader
        found = search(
            query,
            snapshot=reader,
            asked=asked,
            scout=self.parts.scout,
            freshness=freshness,
            rerank_with=self.parts.rerank,
        )
        stats = reader.stats({hit.path for hit in found.hits})
        due_vectors = count_due_vectors(reader, self.parts.embedders)
        self.parts.metrics.count("searches")
        if found.degraded is not None and self.parts.counts is not None:
            self.parts.counts.add("fallbacks", _fallback_detail(found))
        found = found._replace(
            nothing=self._why_nothing(found.nothing),
            fallback_from=self._missed_provider(found),
            degraded=self._why_degraded(found, due_vectors),
            due_vectors=due_vectors,
        )
        return found, self._changed(stats)

    def _why_degraded(self, found: Found, due_vectors: int) -> Degraded | None:
        """Return the most important reason why this answer is less than it could be."""
        known = self.freshener.known
        return (
            known.failed
            or found.degraded
            or self.parts.choice.degraded
            or known.unlisted
            or known.outdated
            or known.unfinished
            or (refusal_of(self.parts.embedders) if due_vectors else None)
        )

    def _why_nothing(self, nothing: NothingFound | None) -> NothingFound | None:
        unlisted = self.freshener.known.unlisted
        if nothing is None or unlisted is None:
            return nothing
        if nothing.code not in ("empty-index", "no-such-words"):
            return nothing
        return nothing._replace(code="still-indexing", message=unlisted.reason)

    def _missed_provider(self, found: Found) -> str:
        """Return the provider that should have answered, if another one did."""
        if not self.parts.embedders or found.mode == "fts-only":
            return ""
        best = self.parts.embedders[-1].identity.provider
        is_missed = found.degraded is not None and found.provider != best
        return self.parts.choice.instead_of or (best if is_missed else "")

    def _changed(self, indexed: Mapping[str, FileStat]) -> list[str]:
        last = self.freshener.known.look
        unlisted = last.unlisted if last is not None else ()
        return changed_files(indexed, self.parts.workspace, unlisted)

    def _without_stale(self, found: Found, changed: Sequence[str], snapshot: HeldSnapshot) -> Found:
        """Drop or move the hits whose text has changed, when the index could not be updated in
        time.
        """
        _, _, plan = self.freshener.look_at_disk(snapshot.reader)
        hits = standing_hits(
            found.hits, set(changed), set(plan.delete), snapshot.reader, self.parts.workspace
        )
        nothing = found.nothing if hits or not found.hits else MATCHES_CHANGED
        return found._replace(hits=hits, nothing=nothing, due_files=plan.due)

    def judge_passage(
        self,
        query: Query,
        select: Callable[[Snapshot], Sequence[ChunkRow]],
        examine: Callable[[Judging], T],
    ) -> T | None:
        """Bring the index up to date, and examine how a query judges some passages.

        `select` finds the passages in a snapshot; without any, the result is None."""
        # Only callers that ask why a passage is missing import these.
        from clawmark.engine.search.pipeline import search
        from clawmark.engine.search.why_not import Judging
        from clawmark.text.keywords.query import clean_query

        query = query._replace(text=clean_query(query.text))
        with HeldSnapshot(self.parts.store) as snapshot:
            freshness = self.freshener.freshen(snapshot)
            asked = self._ask(query.text, snapshot)
            reader = snapshot.reader
            rows = select(reader)
            if not rows:
                return None

            def run(query: Query, also: Sequence[int]) -> Found:
                return search(
                    query,
                    snapshot=reader,
                    asked=asked,
                    scout=self.parts.scout,
                    freshness=freshness,
                    rerank_with=self.parts.rerank,
                    also=also,
                )

            return examine(Judging(query=query, rows=rows, snapshot=reader, asked=asked, run=run))

    def read(
        self, path: str, start: int | None = None, lines: int | None = None, max_chars: int = 12_000
    ) -> Excerpt:
        """Return lines of a memory file."""
        return self.parts.workspace.read_lines(path, start, lines, max_chars=max_chars)

    def sync(
        self,
        *,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        instant_only: bool = False,
        seconds: float | None = None,
    ) -> SyncReport:
        """Index what has changed; `force` builds the next generation of the index."""
        return self.run_sync(
            SyncRequest(
                force=force,
                instant_only=instant_only,
                seconds=seconds,
                lock_timeout=10.0 if seconds is None else 0.0,
                progress=progress,
            )
        )

    def refresh(self, reason: str, *, deltas: bool = False) -> bool:
        """Index what has changed in the background, or without one within a search's budget."""
        if self._background is None:
            with HeldSnapshot(self.parts.store) as snapshot:
                self.freshener.freshen(snapshot)
            return True
        self._background.ask(SyncRequest(reason=reason, deltas=deltas))
        return True

    def status(self) -> Status:
        """Compare disk and index, and report everything about them."""
        from clawmark.engine.maintenance.status import status

        error = self._background.last_error if self._background is not None else None
        message = getattr(error, "message", "") or f"{type(error).__name__}: {error}"
        return status(self.parts, message if error is not None else "")

    def probe(self) -> tuple[Probe, ...]:
        """Embed one word, and score two known vectors."""
        from clawmark.engine.maintenance.probe import probe_embeddings, probe_vectors

        return probe_embeddings(self.parts.choice), probe_vectors(
            self.parts.setup.vector_engine, self.parts.store
        )

    def close(self) -> None:
        """Stop the background worker and close the embedders, the index and the workspace."""
        if self._background is not None:
            self._background.close(self._abort_embedders)
        if self._recording is not None:
            self._recording.close()
        rerankers = (self.parts.rerank.reranker,) if self.parts.rerank is not None else ()
        for part in (*self.parts.embedders, *self.parts.fallbacks, *rerankers):
            if hasattr(part, "close"):
                part.close()
        self.parts.store.close()
        self.parts.workspace.close()

    def run_sync(self, request: SyncRequest) -> SyncReport:
        """Carry out a sync in the background worker if it runs, otherwise here."""
        if self._background is not None and self._background.is_begun:
            return self._background.sync(request)
        return self._sync(request)

    def background(self) -> Background:
        """Return the background worker, making it at the first call."""
        # Imported late: it brings `threading`, which a cold search does without.
        from clawmark.backends.background import Background

        if self._background is None:
            self._background = Background(self._sync, self._debounce, self._interval)
        return self._background

    def _sync(self, request: SyncRequest) -> SyncReport:
        # Imported late: a search that finds nothing due does not need it.
        from clawmark.engine.sync.run import run_sync

        scans = list[Scan]()

        def look(parts: SyncParts) -> tuple[Scan, SyncPlan]:
            scan, plan = self.freshener.look_for_sync(parts)
            scans.append(scan)
            return scan, plan

        request = request._replace(look=look)
        is_complete = False
        try:
            with self._syncing:  # a second sync in this process would repeat the work
                report, healed = healing(
                    self.parts.store, lambda: run_sync(self.parts.sync, request)
                )
            is_complete = report.degraded is None and not report.due_vectors
        finally:
            if self._background is not None and not request.instant_only:
                self._background.note_outcome(is_complete=is_complete)
        self.freshener.after_sync(report.due_files)
        if not scans or not self._is_recorded(scans[-1]):
            self.record(report, self._recent(scans))
        self.parts.metrics.count("syncs")
        degraded = report.degraded or self.parts.choice.degraded
        report = report._replace(degraded=degraded, healed=healed)
        if self.after_sync is None or not scans or request.seconds is not None:
            return report
        return self.after_sync(report, scans[-1], request)

    def _recent(self, scans: Sequence[Scan]) -> Scan | None:
        """Return the last scan of a sync unless it is so old that other files may have changed."""
        if not scans or self.parts.sync.now_ns() - scans[-1].taken_ns > LOOK_SECONDS * 1e9:
            return None
        return scans[-1]

    def record(self, report: SyncReport, scan: Scan | None = None) -> None:
        """Record the files as a version after a sync, if they have changed; never raises.

        `scan` is what the sync saw, if that is recent and not yet recorded."""
        recorder = self._make_recorder() if self._make_recorder is not None else None
        if recorder is not None:
            unlisted = [failure.path for failure in report.scan_failures]
            recorder.record_safely("sync", unlisted=unlisted, scan=scan)

    def note_change(self) -> None:
        """Record the files as a version in the background, soon; only where there is a worker."""
        if self._background is None or self._make_recorder is None:
            return
        with self._making_recording:
            if self._recording is None or self._recording.pid != os.getpid():
                recorder = self._make_recorder()
                if recorder is None:
                    return
                # Imported here: only processes with a background worker need it.
                from clawmark.engine.versions.background_recorder import BackgroundRecorder

                self._recording = BackgroundRecorder(partial(recorder.record_safely, "write"))
            recording = self._recording
        recording.request()

    def _abort_embedders(self) -> None:
        for embedder in (*self.parts.embedders, *self.parts.fallbacks):
            if hasattr(embedder, "abort"):
                embedder.abort()


def _fallback_detail(found: Found) -> str:
    """Return what answered instead, for the log; the reason may quote a service and is left out."""
    instead = f"{found.mode} search by {found.provider}" if found.provider else "words alone"
    failed = f"{found.fallback_from} is not used; " if found.fallback_from else ""
    fix = found.degraded.fix if found.degraded is not None else ""
    return f"{failed}{instead} answered. {fix}".rstrip()
