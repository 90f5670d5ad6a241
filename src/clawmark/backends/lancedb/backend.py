"""Recall over captured entries: a `MemoryBackend` whose vectors are in a LanceDB table.

The files are the source of truth. What is due is computed from files and rows, never from a flag.
An entry without a vector is found by its words. A damaged table, or one of another embedder, is
dropped and filled again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from clawmark.backends.lancedb.entries import Captured
from clawmark.backends.lancedb.files import CapturedFiles, Look
from clawmark.backends.lancedb.plan import RowPlan, plan_rows
from clawmark.backends.lancedb.ranking import Meaning, Ranked, rank, story
from clawmark.backends.lancedb.table import MemoryTable, is_same_space
from clawmark.embed.base import Choice, Embedder, check_vectors
from clawmark.engine.maintenance.probe import probe_embeddings
from clawmark.model.documents import Excerpt
from clawmark.model.errors import BackendUnavailable, ClawmarkError, EmbeddingError, IndexDamaged
from clawmark.model.explanation import Explanation
from clawmark.model.reports import Probe, Status
from clawmark.model.sync_report import Progress, SyncReport
from clawmark.model.values import Degraded, Found, Hit, NothingFound, Query, Space, Vector, citation
from clawmark.system import file_lock
from clawmark.system.private_files import make_private_folder
from clawmark.text.globs import path_matcher
from clawmark.text.keywords.query import clean_query

NEAREST = 200
"""How many rows the vector leg takes into account."""
FRESHEN_SECONDS = 1.5
"""For bringing the table up to date before a search; the rest is reported as due."""
_BATCH = 32
_LOCK_TIMEOUT = 10.0
"""Seconds. The lock is held for milliseconds, or for a second while the table is rewritten."""


class LanceBackend:
    """Search, read and sync over the captured entries of one workspace."""

    def __init__(
        self,
        files: CapturedFiles,
        table: MemoryTable,
        embedder: Callable[[], Embedder | None],
        *,
        lock: str,
        agent_id: str = "main",
    ) -> None:
        self.files = files
        self.table = table
        self._make_embedder = embedder
        self._made: tuple[Embedder | None, Degraded | None] | None = None
        self._lock = lock
        self._agent_id = agent_id
        self._last_error = ""

    def search(self, query: Query, *, freshen: bool = True) -> Found:
        """Return the entries that answer a query; files that changed are looked at in any case."""
        return self.recall(query, freshen=freshen)[0]

    def recall(
        self, query: Query, *, freshen: bool = True, vectors: bool = True
    ) -> tuple[Found, tuple[Captured, ...]]:
        """Return the answer to a query, and the entry of each hit; without `vectors`, by words."""
        began = time.perf_counter()
        query = query._replace(text=clean_query(query.text))
        degraded, due = None, None
        if freshen and vectors:
            report = self.sync(instant_only=True, seconds=FRESHEN_SECONDS)
            degraded, due = report.degraded, report.due_files
        look = self.files.look()
        entries = [entry for entry in look.entries if _passes(entry, query)]
        is_asked = vectors and query.text
        meaning, failed = self._nearest(query.text, entries if is_asked else ())
        ranked = rank(query, entries, meaning) if query.text else []
        kept = [one for one in ranked if one.score >= query.min_score][: query.max_results]
        embedder, _ = self.embedder()
        uses_vectors = meaning is not None and embedder is not None
        found = Found(
            hits=tuple(map(_hit, kept)),
            nothing=None if kept else _why_nothing(query, look, entries, ranked),
            mode="hybrid" if uses_vectors else "fts-only",
            provider=embedder.identity.provider if uses_vectors and embedder else "none",
            model=embedder.identity.model if uses_vectors and embedder else "fts-only",
            degraded=failed or degraded,
            due_files=due,
            milliseconds=(time.perf_counter() - began) * 1000,
            explanation=_explain(kept, len(entries)) if query.explain else None,
        )
        return found, tuple(one.entry for one in kept)

    def read(
        self, path: str, start: int | None = None, lines: int | None = None, max_chars: int = 12_000
    ) -> Excerpt:
        """Return lines of a memory file."""
        return self.files.workspace.read_lines(path, start, lines, max_chars=max_chars)

    def sync(
        self,
        *,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        instant_only: bool = False,
        seconds: float | None = None,
    ) -> SyncReport:
        """Make the table match the files; only entries that changed are embedded again."""
        began = time.monotonic()
        deadline = None if seconds is None else began + seconds
        look = self.files.look()
        if not look.entries and not self.table.exists():
            return _report(look, _NOTHING, embedded=0, left=(), degraded=None, began=began)
        embedder, degraded = self.embedder()
        if embedder is None:
            return _report(look, _NOTHING, embedded=0, left=(), degraded=degraded, began=began)
        try:
            with self.locked():
                if force:
                    self.table.drop()
                look = self.files.look()
                plan = self._plan(look, embedder)
                self.table.delete(plan.delete)
            may_embed = not (instant_only and embedder.traits.remote)
            left, degraded = self._fill(
                plan.put, embedder, deadline if may_embed else began, progress
            )
            with self.locked():
                self.table.tidy()
        except (BackendUnavailable, IndexDamaged) as error:
            self._last_error = error.message
            degraded = Degraded(error.message, error.hint)
            plan = plan_rows(_covered(look.entries, embedder), {})
            return _report(look, plan, embedded=0, left=plan.put, degraded=degraded, began=began)
        embedded = len(plan.put) - len(left)
        return _report(look, plan, embedded=embedded, left=left, degraded=degraded, began=began)

    def refresh(self, reason: str, *, deltas: bool = False) -> bool:
        """Make the table match the files, within the time of a search."""
        self.sync(seconds=FRESHEN_SECONDS)
        return True

    def status(self) -> Status:
        """Compare files and rows; nothing is written."""
        look = self.files.look()
        embedder, degraded = self.embedder()
        workspace = self.files.workspace
        rows, identity = {}, None
        if embedder is not None:
            try:
                with self.locked():
                    rows, identity = dict(self.table.rows()), self.table.identity()
            except ClawmarkError as error:
                degraded = Degraded(error.message, error.hint)
        is_current = embedder is not None and is_same_space(identity, embedder.identity)
        covered = _covered(look.entries, embedder)
        plan = plan_rows(covered, rows, _unread(look), force=not is_current)
        files = {row.path for row in rows.values()} if embedder else set(look.files)
        space = (Space(id=1, identity=identity, ready=True, vectors=len(rows)),) if identity else ()
        due = plan.due_files if embedder else 0
        return Status(
            workspace=workspace.root,
            agent_id=self._agent_id,
            index_path=self.table.folder,
            index_bytes=_bytes_below(self.table.folder),
            config_file="",
            files=len(files),
            chunks=len(rows) if embedder else len(look.entries),
            due_files=due,
            due_by_source={"memory": due},
            due_vectors=len(plan.put) if embedder else 0,
            generation=0,
            rebuilding=False,
            mode="hybrid" if rows and is_current else "fts-only",
            embedder=embedder.traits.label if embedder else "none",
            embedder_reason="" if embedder else "there is no embedder: words answer alone",
            spaces=space,
            vector_engine="lancedb",
            sqlite_version="",
            sqlite_safe=True,
            cache_entries=0,
            cache_limit=0,
            last_sync={},
            last_error=self._last_error,
            skipped=(),
            scan_failures=(),
            denied_paths=workspace.denied,
            degraded=degraded,
            containment=workspace.containment,
            warnings=tuple(f"{one.path}: {one.reason}" for one in look.failures),
            spent={},
            metrics={},
        )

    def probe(self) -> tuple[Probe, ...]:
        """Embed one word, and open the table."""
        embedder, degraded = self.embedder()
        chosen = Choice(
            embedders=(embedder,) if embedder else (),
            reason="there is no embedder",
            degraded=degraded,
        )
        began = time.perf_counter()
        try:
            with self.locked():
                self.table.check()
        except ClawmarkError as error:
            vectors = Probe(
                part="vectors",
                state="failed",
                name="lancedb",
                reason=error.message,
                next_step=error.hint,
            )
        else:
            took = (time.perf_counter() - began) * 1000
            vectors = Probe("vectors", "ok", "lancedb", milliseconds=took)
        return probe_embeddings(chosen), vectors

    def close(self) -> None:
        """Forget the embedder; it and the workspace belong to the caller."""
        self._made = None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the table, between processes and threads."""
        make_private_folder(os.path.dirname(self._lock))
        descriptor = file_lock.acquire(self._lock, _LOCK_TIMEOUT)
        if descriptor is None:
            raise BackendUnavailable(
                f"Another process has held the LanceDB table for {_LOCK_TIMEOUT:.0f} seconds.",
                backend="lancedb",
                hint="Look for a stopped clawmark process.",
            )
        try:
            yield
        finally:
            file_lock.release(descriptor)

    def embedder(self) -> tuple[Embedder | None, Degraded | None]:
        """Return the embedder, made at the first call, or why there is none."""
        if self._made is None:
            try:
                self._made = self._make_embedder(), None
            except EmbeddingError as error:
                self._made = None, Degraded(error.message, error.hint)
        return self._made

    def _plan(self, look: Look, embedder: Embedder) -> RowPlan:
        """Decide what makes the table match the files; the caller holds the lock.

        A table that is damaged or belongs to another embedder is dropped."""
        try:
            identity, rows = self.table.identity(), self.table.rows()
        except IndexDamaged:
            self.table.drop()
            identity, rows = None, {}
        if self.table.exists() and not is_same_space(identity, embedder.identity):
            self.table.drop()
            rows = {}
        return plan_rows(_covered(look.entries, embedder), rows, _unread(look))

    def _fill(
        self,
        entries: Sequence[Captured],
        embedder: Embedder,
        deadline: float | None,
        progress: Callable[[Progress], None] | None,
    ) -> tuple[Sequence[Captured], Degraded | None]:
        """Embed entries and write their rows; return what is left, and why an embedder failed.

        The lock is held only while rows are written, because embedding may take long."""
        done = 0
        while done < len(entries) and (deadline is None or time.monotonic() < deadline):
            batch = entries[done : done + _BATCH]
            try:
                vectors = embed_entries(embedder, [entry.text for entry in batch])
            except EmbeddingError as error:
                self._last_error = error.message
                return entries[done:], Degraded(error.message, error.hint)
            with self.locked():
                self.table.put(batch, vectors, embedder.identity)
            done += len(batch)
            if progress is not None:
                label = embedder.traits.label
                progress(Progress(stage="vectors", done=done, total=len(entries), label=label))
        return entries[done:], None

    def _nearest(
        self, text: str, entries: Sequence[Captured]
    ) -> tuple[Meaning | None, Degraded | None]:
        """Return the nearest entries; None, with the reason, if vectors cannot be used."""
        embedder, degraded = self.embedder()
        if embedder is None or not entries or not embedder.covers(text):
            return None, degraded
        try:
            vector = embedder.embed_query(text)
            with self.locked():
                if not is_same_space(self.table.identity(), embedder.identity):
                    return None, None
                cosines, rows = self.table.nearest(vector, NEAREST), self.table.rows()
        except (EmbeddingError, BackendUnavailable, IndexDamaged) as error:
            return None, Degraded(error.message, error.hint)
        # The vector of a row that is not up to date has the meaning of another text.
        current = {one.id for one in entries if one.id in rows and rows[one.id].text == one.text}
        kept = {one: cosine for one, cosine in cosines.items() if one in current}
        return Meaning(kept, embedder.traits), None


def embed_entries(embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
    """Return checked vectors; raises EmbeddingError."""
    vectors = embedder.embed_texts(texts)
    dims = embedder.identity.dims or (len(vectors[0]) // 4 if vectors else 0)
    check_vectors(vectors, len(texts), embedder.identity._replace(dims=dims))
    return vectors


_NOTHING = RowPlan(put=(), delete=(), added=(), updated=(), deleted=())


def _covered(entries: Sequence[Captured], embedder: Embedder | None) -> list[Captured]:
    """Return the entries whose language the model knows; the others have no vector."""
    return [entry for entry in entries if embedder is not None and embedder.covers(entry.text)]


def _unread(look: Look) -> frozenset[str]:
    return frozenset(failure.path for failure in look.failures)


def _passes(entry: Captured, query: Query) -> bool:
    filters = query.filters
    if filters.source not in ("", "memory") or (
        filters.path and not path_matcher(filters.path)(entry.path)
    ):
        return False
    day = entry.date
    is_dated = bool(day) or not (filters.since or filters.until)
    return is_dated and filters.since <= day and (not filters.until or day <= filters.until)


def _hit(one: Ranked) -> Hit:
    entry = one.entry
    return Hit(
        path=entry.path,
        start_line=entry.start_line,
        end_line=entry.end_line,
        score=one.score,
        snippet=entry.text,
        snippet_start=entry.start_line,
        snippet_end=entry.end_line,
        source="memory",
        vector_score=round(min(1.0, one.vector.score), 4),
        text_score=round(one.text.text, 4),
        date=entry.date,
        snippet_ranges=((entry.start_line, entry.end_line),),
    )


def _why_nothing(
    query: Query, look: Look, entries: Sequence[Captured], ranked: Sequence[Ranked]
) -> NothingFound:
    if not query.text:
        return NothingFound("empty-query", "The query is empty.", None)
    if not look.entries:
        return NothingFound("empty-index", "Nothing has been captured yet.", None)
    if not entries:
        message = f"No entry matches the filters ({query.filters.summary})."
        return NothingFound("filtered-out", message, None)
    if not ranked:
        return NothingFound("no-such-words", "None of these words occur in the memory.", None)
    best = round(ranked[0].score, 4)
    message = (
        f"Nothing reaches the minimum score {query.min_score:g}; the best match has {best:.2f}."
    )
    return NothingFound("below-threshold", message, best)


def _explain(kept: Sequence[Ranked], entries: int) -> Explanation:
    stories = tuple(
        story(
            number,
            one,
            citation(one.entry.path, one.entry.start_line, one.entry.end_line),
        )
        for number, one in enumerate(kept, 1)
    )
    return Explanation((), stories, entries)


def _report(
    look: Look,
    plan: RowPlan,
    *,
    embedded: int,
    left: Sequence[Captured],
    degraded: Degraded | None,
    began: float,
) -> SyncReport:
    due = {entry.path for entry in left}
    return SyncReport(
        added=sum(path not in due for path in plan.added),
        updated=sum(path not in due for path in plan.updated),
        touched=0,
        deleted=len(plan.deleted),
        unchanged=len(set(look.files) - {*plan.added, *plan.updated}),
        chunks=len(look.entries),
        embedded=embedded,
        reused=0,
        skipped=(),
        failures=look.failures,
        scan_failures=(),
        due_files=len(due),
        due_vectors=len(left),
        generation=0,
        degraded=degraded,
        seconds=time.monotonic() - began,
    )


def _bytes_below(folder: str) -> int:
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(root, name)).st_size
            except OSError:
                continue  # deleted while it was counted
    return total
