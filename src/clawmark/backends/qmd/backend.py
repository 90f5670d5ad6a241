"""The QMD backend: QMD indexes and ranks, Clawmark decides what is due and shows the lines.

`Indexer` keeps QMD's index in step with the files; `QmdBackend` answers from it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple

from clawmark.backends.background import Background
from clawmark.backends.qmd import answers
from clawmark.backends.qmd.indexer import Indexer, Look
from clawmark.engine.sync.scan import SyncRequest
from clawmark.model.documents import Excerpt
from clawmark.model.errors import BackendUnavailable
from clawmark.model.explanation import Explanation, Step
from clawmark.model.reports import Probe, Status
from clawmark.model.sync_report import Progress, SyncReport
from clawmark.model.values import Degraded, Found, Hit, NothingFound, Query, Scan, SyncPlan, Term
from clawmark.system.cancellation import check_cancelled
from clawmark.text.keywords.query import clean_query

FIRST_SECONDS = 30.0
"""How long the first search waits for QMD's first index."""
NO_WORDS = NothingFound("empty-query", "The query has no words to look for.", None)


class SearchOptions(NamedTuple):
    """The options of a search with QMD."""

    mode: str
    most: int
    """The most hits of an answer."""
    snippets: answers.SnippetLimits
    seconds: float
    """The time limit of a search, and of an update that a search asks for."""
    freshen: bool
    """Whether a search updates the index first."""
    wait_for_first: bool
    """Whether the first search waits as long as an update may take."""
    default_min_score: float
    """A query with this minimum did not ask for another one; it is not applied."""


class QmdBackend:
    """Search over one workspace with QMD; a `MemoryBackend`."""

    def __init__(
        self,
        indexer: Indexer,
        options: SearchOptions,
        describe: Callable[[], Status],
        *,
        background: bool = False,
        update_on_start: bool = False,
        debounce: float = 15.0,
        interval: float = 0.0,
    ) -> None:
        self.indexer = indexer
        self._options = options
        self._describe = describe
        self._debounce = debounce
        self._background: Background | None = None
        if background:
            self._background = Background(self._run_request, debounce, interval)
            if update_on_start:
                self._background.ask(SyncRequest(reason="session-start"))

    def search(self, query: Query, *, freshen: bool = True) -> Found:
        """Answer a query from QMD's index, updated first within the time limit."""
        began = time.perf_counter()
        terms = answers.search_words(clean_query(query.text))
        if not terms:
            return self._found((), NO_WORDS, None, began)
        look, degraded = self._freshen(freshen=freshen and self._options.freshen)
        check_cancelled()
        if not look.indexed:
            return self._found((), _nothing_indexed(look), look, began, degraded)
        updated = time.perf_counter()
        hits, nothing = self._answer(query, terms, look)
        found = self._found(hits, nothing, look, began, degraded)
        if not query.explain:
            return found
        words = ", ".join(term.text for term in terms)
        steps = (
            _step(1, "words", words, 0.0),
            _step(2, "update index", f"{look.plan.due} files due", updated - began),
            _step(3, "QMD", f"{len(hits)} hits", time.perf_counter() - updated),
        )
        stories = tuple(answers.story_of(hit, rank) for rank, hit in enumerate(hits, 1))
        return found._replace(explanation=Explanation(steps, stories, len(look.indexed)))

    def read(
        self, path: str, start: int | None = None, lines: int | None = None, max_chars: int = 12_000
    ) -> Excerpt:
        return self.indexer.workspace.read_lines(path, start, lines, max_chars=max_chars)

    def sync(
        self,
        *,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        instant_only: bool = False,
        seconds: float | None = None,
    ) -> SyncReport:
        """Update QMD's index; `force` deletes it first."""
        del progress  # QMD does not report it
        return self.indexer.sync(force=force, seconds=seconds, embed=not instant_only)

    def refresh(self, reason: str, *, deltas: bool = False) -> bool:
        """Update QMD's index in the background, or here within the time limit of a search."""
        is_early = self.indexer.seconds_since_update() < self._debounce
        if self._background is not None:
            self._background.ask(SyncRequest(reason=reason, deltas=deltas), settle=is_early)
            return True
        if not self.indexer.look().plan.due:
            return True
        if is_early:
            return False
        return self.indexer.sync(seconds=self._options.seconds).due_files == 0

    def status(self) -> Status:
        """Report QMD's index in the terms of the built-in one; BackendUnavailable if QMD does not
        start.
        """
        version = self.indexer.version(cached=True)
        look, folders = self.indexer.look(), self.indexer.process.folders
        by_source = dict.fromkeys(("memory", "sessions"), 0)
        for state in (*look.plan.add, *look.plan.check):
            by_source[state.source] += 1
        error = self._background.last_error if self._background is not None else None
        described = self._describe()
        return described._replace(
            backend="qmd",
            index_path=folders.index_file,
            index_bytes=_size(folders.index_file) + _size(folders.index_file + "-wal"),
            files=len(look.indexed),
            chunks=len(look.indexed),
            due_files=look.plan.due,
            due_by_source={name: due for name, due in by_source.items() if due or name == "memory"},
            due_vectors=0,
            generation=0,
            rebuilding=False,
            mode="fts-only" if self._options.mode == "search" else "hybrid",
            embedder="none: keywords only"
            if self._options.mode == "search"
            else "QMD's own models",
            embedder_reason=f"QMD {version}, memory.qmd.searchMode is {self._options.mode}",
            spaces=(),
            vector_engine="off",
            cache_entries=0,
            cache_limit=0,
            last_sync=dict(look.last_sync),
            last_error=str(error) if error is not None else "",
            unsearched_files=0,
            skipped=tuple(dict.fromkeys((*described.skipped, *look.scan.skipped))),
            degraded=None,
        )

    def probe(self) -> tuple[Probe, ...]:
        """Ask QMD for its version."""
        began = time.perf_counter()
        name = f"QMD ({self.indexer.process.command})"
        try:
            version = self.indexer.version()
        except BackendUnavailable as error:
            return (
                Probe(
                    part="backend",
                    state="failed",
                    name=name,
                    reason=error.message,
                    next_step=error.hint or "Run `qmd doctor` for details.",
                ),
            )
        took = (time.perf_counter() - began) * 1000
        return (Probe(part="backend", state="ok", name=name, model=version, milliseconds=took),)

    def close(self) -> None:
        """Stop the background worker and kill running commands."""
        if self._background is not None:
            self._background.close(self.indexer.process.close)
        self.indexer.process.close()

    def plan(self) -> tuple[SyncPlan, Scan]:
        """Return what `sync` would do now."""
        look = self.indexer.look()
        return look.plan, look.scan

    def _run_request(self, request: SyncRequest) -> SyncReport:
        return self.indexer.sync(force=request.force, reason=request.reason)

    def _freshen(self, *, freshen: bool) -> tuple[Look, Degraded | None]:
        """Compare disk and index, and update the index if files are due.

        An update that takes too long or fails leaves an index that can still be searched."""
        look = self.indexer.look()
        if not freshen or not (look.plan.due or look.plan.recheck):
            return look, None
        seconds = self._options.seconds if look.indexed else FIRST_SECONDS
        if self._options.wait_for_first and not look.indexed:
            seconds = self.indexer.options.update_seconds
        try:
            self.indexer.sync(seconds=seconds, reason="search", embed=False)
            return self.indexer.look(), None
        except BackendUnavailable as error:
            if not look.indexed:
                raise
            if self._background is not None:
                self._background.hand_over("search")
            return look, Degraded(error.message, error.hint or "Run `clawmark index`.")

    def _answer(
        self, query: Query, terms: list[Term], look: Look
    ) -> tuple[tuple[Hit, ...], NothingFound | None]:
        options, filters = self._options, query.filters
        most = min(options.most, query.max_results)
        count = min(most * answers.SPARE_ROWS, answers.MOST_ROWS)
        count = answers.MOST_ROWS if filters.summary else count
        arguments = answers.search_arguments(options.mode, query.text, terms, count)
        rows = self.indexer.ask(arguments, options.seconds)
        reader = answers.PassageReader(
            self.indexer.workspace, self.indexer.collections(), look.known
        )
        matches = answers.path_filter(filters)
        scorer = answers.Scorer(
            terms if options.mode == "search" else (), max((row.score for row in rows), default=0.0)
        )
        found = dict[str, tuple[float, answers.Passage]]()
        dropped = 0
        for row in rows:
            passage = reader.read(row)
            if passage is None or passage.path in found:
                continue
            if not answers.passes(filters, passage, matches):
                dropped += 1
                continue
            found[passage.path] = (scorer.score(passage, row.score), passage)
        scored = sorted(found.values(), key=lambda one: -one[0])
        least = query.min_score if query.min_score != options.default_min_score else 0.0
        kept = [one for one in scored if one[0] >= least]
        hits = answers.as_hits(kept, most, options.snippets)
        return hits, None if hits else _why_nothing(query, scored, dropped, look)

    def _found(
        self,
        hits: tuple[Hit, ...],
        nothing: NothingFound | None,
        look: Look | None,
        began: float,
        degraded: Degraded | None = None,
    ) -> Found:
        return Found(
            hits=hits,
            nothing=nothing,
            mode="fts-only" if self._options.mode == "search" else "hybrid",
            provider="qmd",
            model=self._options.mode,
            degraded=degraded,
            due_files=look.plan.due if look is not None else 0,
            milliseconds=(time.perf_counter() - began) * 1000,
        )


def _step(number: int, name: str, summary: str, seconds: float) -> Step:
    return Step(number=number, name=name, summary=summary, milliseconds=seconds * 1000)


def _nothing_indexed(look: Look) -> NothingFound:
    if look.plan.due:
        return NothingFound(
            "still-indexing", f"Nothing yet: {look.plan.due} files are still due.", None
        )
    return NothingFound("empty-index", "There is no memory yet.", None)


def _why_nothing(
    query: Query,
    scored: list[tuple[float, answers.Passage]],
    dropped: int,
    look: Look,
) -> NothingFound:
    if scored:
        best = scored[0][0]
        message = (
            f"Nothing reaches the minimum score {query.min_score:g}; the best match has {best:.2f}."
        )
        return NothingFound("below-threshold", message, best)
    if dropped:
        message = f"QMD found {dropped} files, but none matches the filters"
        return NothingFound("filtered-out", f"{message} ({query.filters.summary}).", None)
    if look.plan.due:
        return _nothing_indexed(look)
    return NothingFound("no-such-words", "QMD finds none of these words in the memory.", None)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
