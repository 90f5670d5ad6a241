"""The built-in backend: a workspace, its SQLite index and the embedders, working as one.

It is handed its parts and owns them: closing it closes the index and the workspace. Searching
brings the index up to date first, within a budget, and answers from what is there; only `sync` does
unbounded work."""

import time
from _thread import RLock  # a lock without `threading`, which costs a cold search 1 ms
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from clawmark.backends.current import changed_files, standing_hits
from clawmark.backends.freshening import LOOK_SECONDS, Freshener
from clawmark.embed.base import Embedder
from clawmark.engine.search.legs import Asked, ask
from clawmark.engine.search.pipeline import Freshness, search
from clawmark.engine.sync.scan import SyncParts, look_ahead
from clawmark.model.errors import IndexDamaged, IndexFromTheFuture
from clawmark.model.values import (
    Degraded,
    FileStat,
    Found,
    Identity,
    NothingFound,
    Query,
    Scan,
    Space,
    SyncPlan,
)
from clawmark.store.sqlite.store import Index, Reader
from clawmark.system.cancellation import check_cancelled
from clawmark.system.counters import Metrics
from clawmark.text.keywords.query import clean_query
from clawmark.workspace import Workspace

if TYPE_CHECKING:
    from clawmark.backends.background import Background
    from clawmark.engine.search.rerank import RerankStep
    from clawmark.engine.sync.run import SyncRequest
    from clawmark.model.documents import Excerpt
    from clawmark.model.reports import SyncReport

# How often a search begins anew because its index was deleted or replaced meanwhile.
ATTEMPTS = 5
MATCHES_CHANGED = NothingFound(
    "still-indexing",
    "The files that matched have changed or are gone, and the index has not caught up yet.",
    None,
)


class Parts(NamedTuple):
    """What the composition root hands over."""

    workspace: Workspace
    store: Index
    sync: SyncParts
    embedders: tuple[Embedder, ...]
    fallbacks: tuple[Embedder, ...]
    revive: Callable[[Identity], Embedder | None]
    """Makes the embedder of an older space again, so that it answers until its successor is
    complete.
    """
    scout: Embedder | None
    """An embedder that costs microseconds a sentence, to pick snippets with."""
    degraded: Degraded | None
    """Why the embedder is less than what was configured."""
    metrics: Metrics
    instead_of: str = ""
    """The provider that was configured and cannot be used."""
    source_file: str = ""
    """Where the list of added sources is."""
    rerank: "RerankStep | None" = None
    """Who puts the best candidates in order; nothing when that is off."""


class BuiltinBackend:
    """Search, read and sync over one workspace."""

    def __init__(
        self,
        parts: Parts,
        freshen: bool,
        background: bool = False,
        debounce: float = 1.5,
        interval: float = 0.0,
    ) -> None:
        self.parts = parts
        self._freshens = freshen
        self._debounce, self._interval = debounce, interval
        self._revived: dict[Identity, Embedder | None] = {}
        self._syncing = RLock()
        self._background: Background | None = None
        self.freshener = Freshener(parts, lambda: self._background)
        if background:
            self.background()

    def search(self, query: Query, *, freshen: bool = True) -> Found:
        """Answer from an index that is as fresh as the budget allows; a broken one is built again
        within the budget.
        """
        try:
            return self._answer(query, freshen=freshen and self._freshens)
        except (IndexDamaged, IndexFromTheFuture) as error:
            broken = error
        from clawmark.engine.maintenance.repair import heal, healing

        what = heal(self.parts.store, broken)
        self.freshener.expire()
        found, again = healing(self.parts.store, lambda: self._answer(query, freshen=True))
        fix = (
            f"Files due: {found.due_files}; `clawmark index` finishes it."
            if found.due_files
            else ""
        )
        return found._replace(degraded=Degraded(what or again, fix)) if what or again else found

    def _answer(self, query: Query, *, freshen: bool) -> Found:
        store = self.parts.store
        for _ in range(ATTEMPTS):
            mark = store.mark()
            found = self._answer_once(query, freshen=freshen)
            # Whoever deleted the index between the look and the answer must not get an empty one
            # for a complete one.
            if not store.was_replaced(mark):
                break
            self.freshener.expire()
        return found

    def _answer_once(self, query: Query, *, freshen: bool) -> Found:
        check_cancelled()
        freshener = self.freshener
        freshen = freshen or freshener.was_replaced()
        freshness = (
            freshener.freshen()
            if freshen
            else Freshness(freshener.known_due(), "not asked for", 0.0)
        )
        query = query._replace(text=clean_query(query.text))
        check_cancelled()
        asked_at = freshener.clock()
        asked = self._ask(query.text)
        if freshen and freshener.clock() - asked_at > LOOK_SECONDS:
            freshness = freshener.freshen()  # a service took so long to embed the question
        found, stats = self._find(query, asked, freshness)
        suspects = self._suspects(stats)
        if suspects and freshen and not freshness.due_files:
            # Files changed after the look.
            freshness = freshener.freshen(now=True)
            found, stats = self._find(query, asked, freshness)
            suspects = self._suspects(stats)
        return self._without_stale(found, suspects) if suspects else found

    def _find(
        self, query: Query, asked: Asked, freshness: Freshness
    ) -> tuple[Found, dict[str, FileStat]]:
        """The answer from one snapshot, and in what state the files of its hits were indexed."""
        check_cancelled()
        with self.parts.store.reading() as reader:
            found = search(
                query,
                reader=reader,
                asked=asked,
                scout=self.parts.scout,
                freshness=freshness,
                rerank_with=self.parts.rerank,
            )
            stats = reader.stats({hit.path for hit in found.hits})
            due_vectors = due_vectors_of_best(reader, self.parts.embedders)
        self.parts.metrics.count("searches")
        stuck, unlisted, outdated = (
            self.freshener.stuck,
            self.freshener.unlisted,
            self.freshener.outdated,
        )
        if (
            unlisted is not None
            and found.nothing is not None
            and found.nothing.code in ("empty-index", "no-such-words")
        ):
            found = found._replace(
                nothing=found.nothing._replace(code="still-indexing", message=unlisted.reason)
            )
        found = found._replace(fallback_from=self._missed(found))
        degraded = stuck or found.degraded or self.parts.degraded or unlisted or outdated
        if degraded is None and due_vectors:
            degraded = refusal_of(self.parts.embedders)
        return found._replace(degraded=degraded, due_vectors=due_vectors), stats

    def _suspects(self, stats: dict[str, FileStat]) -> list[str]:
        """The files of the hits that are not as they were indexed, but for those whose folder
        cannot be listed.
        """
        last = self.freshener.last
        return changed_files(stats, self.parts.workspace, last.unlisted if last is not None else ())

    def _without_stale(self, found: Found, suspects: Sequence[str]) -> Found:
        """The answer without what no longer stands in its file; the index could not be brought up
        to date in time.
        """
        _, _, plan = self.freshener.look_at_disk()
        with self.parts.store.reading() as reader:
            hits = standing_hits(
                found.hits, set(suspects), set(plan.delete), reader, self.parts.workspace
            )
        nothing = found.nothing if hits or not found.hits else MATCHES_CHANGED
        return found._replace(hits=hits, nothing=nothing, due_files=plan.due)

    def _missed(self, found: Found) -> str:
        """The provider that should have answered, where another one had to."""
        if not self.parts.embedders or found.mode == "fts-only":
            return ""
        best = self.parts.embedders[-1].identity.provider
        return self.parts.instead_of or (
            best if found.degraded is not None and found.provider != best else ""
        )

    def _ask(self, text: str) -> Asked:
        """The query's vectors; the index is only looked at to see who can answer."""
        if not text or not self.parts.embedders:
            return ask(text, (), ())
        began = time.perf_counter()
        with self.parts.store.reading() as reader:
            spaces = reader.spaces()
        return ask(text, answering(self.parts, spaces, self._revived), spaces)._replace(
            milliseconds=_since(began)
        )

    def read(
        self, path: str, start: int | None, lines: int | None, max_chars: int = 12_000
    ) -> "Excerpt":
        """Some lines of a memory file, bounded."""
        return self.parts.workspace.read_lines(path, start, lines, max_chars=max_chars)

    def plan(self, *, force: bool = False) -> tuple[SyncPlan, Scan]:
        """What a sync would do, without doing it."""
        scan, plan = look_ahead(self.parts.sync, force=force)
        return plan, scan

    def sync(self, request: "SyncRequest") -> "SyncReport":
        """Bring the index in step with the disk; when a keeper does such things here, it does this
        one too.
        """
        if self._background is not None and self._background.is_begun:
            return self._background.sync(request)
        return self._sync(request)

    def background(self) -> "Background":
        """What is done beside answering; made when it is first asked for."""
        from clawmark.backends.background import Background

        if self._background is None:
            self._background = Background(self._sync, self._debounce, self._interval)
        return self._background

    @property
    def last_error(self) -> str:
        """Why the last sync in the background failed; empty when it did not."""
        error = self._background.last_error if self._background is not None else None
        return (
            ""
            if error is None
            else getattr(error, "message", "") or f"{type(error).__name__}: {error}"
        )

    def freshen_for(self, reason: str, *, deltas: bool = False) -> None:
        """Bring the index up to date for a reason: in the background, or within the budget of a
        search without one.
        """
        if self._background is None:
            self.freshener.freshen()
            return
        from clawmark.engine.sync.run import SyncRequest

        self._background.ask(SyncRequest(reason=reason, deltas=deltas))

    def _sync(self, request: "SyncRequest") -> "SyncReport":
        from clawmark.engine.maintenance.repair import healing
        from clawmark.engine.sync.run import run_sync
        from clawmark.engine.sync.time_left import with_time_left

        if request.progress is not None:
            request = request._replace(progress=with_time_left(request.progress))
        request = request._replace(look=self.freshener.look_for_sync)
        is_whole = False
        try:
            with self._syncing:  # a second one in this process would only do the same work again
                report, healed = healing(
                    self.parts.store, lambda: run_sync(self.parts.sync, request)
                )
            is_whole = report.degraded is None and not report.due_vectors
        finally:
            if self._background is not None and not request.instant_only:
                self._background.rest(is_needed=not is_whole)
        self.freshener.after_sync(report.due_files)
        self.parts.metrics.count("syncs")
        return report._replace(degraded=report.degraded or self.parts.degraded, healed=healed)

    def close(self) -> None:
        if self._background is not None:
            self._background.close(self._abort_embedders)
        rerankers = (self.parts.rerank.reranker,) if self.parts.rerank is not None else ()
        for part in (*self.parts.embedders, *self.parts.fallbacks, *rerankers):
            if hasattr(part, "close"):
                part.close()
        self.parts.store.close()
        self.parts.workspace.close()

    def _abort_embedders(self) -> None:
        """Wait no longer for services."""
        for embedder in (*self.parts.embedders, *self.parts.fallbacks):
            if hasattr(embedder, "abort"):
                embedder.abort()


def answering(
    parts: Parts, spaces: Sequence[Space], revived: dict[Identity, Embedder | None]
) -> Sequence[Embedder]:
    """Who may answer, the best last: the chosen embedders and stand-ins; while the best is not
    complete, the one before.

    `revived` keeps those that were made again.
    """
    chosen = parts.embedders
    if len(chosen) < 2:
        return (*chosen, *reversed(parts.fallbacks))
    instant, best = chosen[:-1], chosen[-1]
    ready = [space.identity for space in spaces if space.ready]
    if best.identity in ready:
        return (*instant, *reversed(parts.fallbacks), best)
    known = {embedder.identity for embedder in (*chosen, *parts.fallbacks)}
    for identity in ready:
        if identity not in known and identity not in revived:
            revived[identity] = parts.revive(identity)
    older = [made for identity in ready if (made := revived.get(identity)) is not None]
    return (*instant, *reversed(parts.fallbacks), *older)


def due_vectors_of_best(reader: Reader, embedders: Sequence[Embedder]) -> int:
    """How many chunks still wait for a vector of the best embedder: all of them while it has none."""
    if not embedders:
        return 0
    best = [space for space in reader.spaces() if space.identity == embedders[-1].identity]
    return reader.count_due_vectors(best[0].id) if best else reader.count_chunks()


def refusal_of(embedders: Sequence[Embedder]) -> Degraded | None:
    """Why the best embedder is not asked at all: its answers do not fit the settings, which have to
    change first.
    """
    found: Degraded | None = getattr(embedders[-1], "refusal", None) if embedders else None
    return found


def _since(began: float) -> float:
    return (time.perf_counter() - began) * 1000
