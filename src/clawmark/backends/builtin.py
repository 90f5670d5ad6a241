"""The built-in backend: a workspace, its SQLite index and the embedders, working as one.

It is handed its parts and owns them: closing it closes the index and the workspace. Searching brings the index up to date
first, within a budget, and answers from what is there; only `sync` does unbounded work.
"""

import time
from _thread import RLock, allocate_lock  # locks without `threading`, which costs a cold search 1 ms
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from clawmark.asker import go_on, has_left
from clawmark.embed.base import Embedder
from clawmark.errors import IndexBusy, IndexDamaged, IndexFromTheFuture, IndexStoreError
from clawmark.index.store import Index, Mark, Reader
from clawmark.observe import Metrics
from clawmark.search.legs import Asked, ask
from clawmark.search.pipeline import Freshness, search
from clawmark.sync.look import FEW_CHUNKS, SyncParts, look, look_ahead
from clawmark.sync.plan import changed_since
from clawmark.text.query import clean_query
from clawmark.types import Degraded, Found, Identity, Query, Scan, ScanFailure, Space, SyncPlan
from clawmark.values import NamedTuple
from clawmark.workspace import Workspace

if TYPE_CHECKING:
    from clawmark.backends.background import Background
    from clawmark.documents import Excerpt
    from clawmark.reports import SyncReport
    from clawmark.search.rerank import RerankStep
    from clawmark.sync.run import SyncRequest

# A search may spend this long on bringing the index up to date; the very first one may take longer to answer at all.
FRESHEN_SECONDS = 1.5
FIRST_FRESHEN_SECONDS = 10.0
# While the keeper of this process works, it is the one that indexes; a search only adds what cannot wait.
BESIDE_KEEPER_SECONDS = 0.25
# So many files are the keeper's alone, but for those that changed since this process last looked; how many are left is
# counted anew after this rest.
MANY_FILES = 200
MUCH_REST_SECONDS = 1.0
# By so much the time of a file may lie behind the clock.
TICK_NS = 20_000_000
# A warm process looks at the disk again only after it has rested this many times as long as the last look took, or after it
# has written something itself.
REST_FACTOR = 20
# How often a search begins anew because its index was deleted or replaced meanwhile.
ATTEMPTS = 5
# While this very process syncs in the background, or for another search, one waits so long for its own next turn.
OWN_LOCK_SECONDS = 0.25
# So long another process may take for a rebuild before this one takes it up.
REBUILD_PATIENCE = 60.0

OUTDATED = Degraded(
    "The text was cut with other chunking settings, or a rebuild is not finished.",
    "Run `clawmark index`; the old passages answer until then.",
)


class Parts(NamedTuple):
    """What the composition root hands over."""

    workspace: Workspace
    store: Index
    sync: SyncParts
    embedders: tuple[Embedder, ...]
    fallbacks: tuple[Embedder, ...]
    revive: Callable[[Identity], Embedder | None]
    """Makes the embedder of an older space again, so that it answers until its successor is complete."""
    scout: Embedder | None
    """An embedder that costs microseconds a sentence, to pick snippets with."""
    degraded: Degraded | None
    """Why the embedder is less than what was configured."""
    metrics: Metrics
    instead_of: str = ""
    """The provider that was configured and cannot be used."""
    rerank: "RerankStep | None" = None
    """Who puts the best candidates in order; nothing when that is off."""


class BuiltinBackend:
    """Search, read and sync over one workspace."""

    def __init__(
        self, parts: Parts, freshen: bool, background: bool = False, debounce: float = 1.5, interval: float = 0.0
    ) -> None:
        self.parts = parts
        self._freshens = freshen
        self._debounce, self._interval = debounce, interval
        self._rest_until = 0.0
        self._opened, self._looked_ns = time.monotonic(), 0
        """When this memory was opened, and when the last look began."""
        self._looked_at: Mark = (0, None)
        self._looked_after = 0
        """How many changes of our own the last look could see."""
        self._due = 0
        self._due_vectors = 0
        self._outdated: Degraded | None = None
        self._stuck: Degraded | None = None
        """Why the last look could not bring the index up to date."""
        self._building, self._building_since = 0, 0.0
        self._blind: Degraded | None = None
        self._revived: dict[Identity, Embedder | None] = {}
        self._syncing = RLock()
        self._freshening = allocate_lock()
        self._background: Background | None = None
        if background:
            self.background()

    def search(self, query: Query, *, freshen: bool = True) -> Found:
        """Answer from an index that is as fresh as the budget allows; a broken one is built again within the budget."""
        try:
            return self._answer(query, freshen=freshen and self._freshens)
        except (IndexDamaged, IndexFromTheFuture) as error:
            broken = error
        from clawmark.backends.heal import heal, healing

        what = heal(self.parts.store, broken)
        self._rest_until = 0.0
        found, again = healing(self.parts.store, lambda: self._answer(query, freshen=True))
        fix = f"Files due: {found.due_files}; `clawmark index` finishes it." if found.due_files else ""
        return found._replace(degraded=Degraded(what or again, fix)) if what or again else found

    def _answer(self, query: Query, *, freshen: bool) -> Found:
        store = self.parts.store
        for _ in range(ATTEMPTS):
            mark = store.mark()
            found = self._answer_once(query, freshen=freshen)
            # Whoever deleted the index between the look and the answer must not get an empty one for a complete one.
            if not store.was_replaced(mark):
                break
            self._rest_until = 0.0
        return found

    def _answer_once(self, query: Query, *, freshen: bool) -> Found:
        go_on()
        is_other = self.parts.store.was_replaced(self._looked_at)
        freshness = self._freshen() if freshen or is_other else Freshness(self._due, "not asked for", 0.0)
        query = query._replace(text=clean_query(query.text))
        go_on()
        asked = self._ask(query.text)
        go_on()
        with self.parts.store.reading() as reader:
            found = search(
                query,
                reader=reader,
                asked=asked,
                scout=self.parts.scout,
                freshness=freshness,
                rerank_with=self.parts.rerank,
            )
        self.parts.metrics.count("searches")
        if self._blind is not None and found.nothing is not None and found.nothing.code in ("empty-index", "no-such-words"):
            found = found._replace(nothing=found.nothing._replace(code="still-indexing", message=self._blind.reason))
        found = found._replace(fallback_from=self._missed(found))
        degraded = self._stuck or found.degraded or self.parts.degraded or self._blind or self._outdated
        return found._replace(degraded=degraded, due_vectors=self._due_vectors)

    def _missed(self, found: Found) -> str:
        """The provider that should have answered, where another one had to."""
        if not self.parts.embedders or found.mode == "fts-only":
            return ""
        best = self.parts.embedders[-1].identity.provider
        return self.parts.instead_of or (best if found.degraded is not None and found.provider != best else "")

    def _ask(self, text: str) -> Asked:
        """The query's vectors; the index is only looked at to see who can answer."""
        if not text or not self.parts.embedders:
            return ask(text, (), ())
        began = time.perf_counter()
        with self.parts.store.reading() as reader:
            spaces = reader.spaces()
        return ask(text, answering(self.parts, spaces, self._revived), spaces)._replace(milliseconds=_since(began))

    def read(self, path: str, start: int | None, lines: int | None, max_chars: int = 12_000) -> "Excerpt":
        """Some lines of a memory file, bounded."""
        return self.parts.workspace.read_lines(path, start, lines, max_chars=max_chars)

    def plan(self, *, force: bool = False) -> tuple[SyncPlan, Scan]:
        """What a sync would do, without doing it."""
        scan, plan = look_ahead(self.parts.sync, force=force)
        return plan, scan

    def sync(self, request: "SyncRequest") -> "SyncReport":
        """Bring the index in step with the disk; when a keeper does such things here, it does this one too."""
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
    def due(self) -> tuple[int, int]:
        """How many files and vectors the last look or sync left."""
        return self._due, self._due_vectors

    @property
    def last_error(self) -> str:
        """Why the last sync in the background failed; empty when it did not."""
        error = self._background.last_error if self._background is not None else None
        return "" if error is None else getattr(error, "message", "") or f"{type(error).__name__}: {error}"

    def freshen_for(self, reason: str, *, deltas: bool = False) -> None:
        """Bring the index up to date for a reason: in the background, or within the budget of a search without one."""
        if self._background is None:
            self._freshen()
            return
        from clawmark.sync.run import SyncRequest

        self._background.ask(SyncRequest(reason=reason, deltas=deltas))

    def _sync(self, request: "SyncRequest") -> "SyncReport":
        from clawmark.backends.heal import healing
        from clawmark.sync.pace import with_time_left
        from clawmark.sync.run import run_sync

        if request.progress is not None:
            request = request._replace(progress=with_time_left(request.progress))
        is_whole = False
        try:
            with self._syncing:  # a second one in this process would only do the same work again
                report, healed = healing(self.parts.store, lambda: run_sync(self.parts.sync, request))
            is_whole = report.degraded is None and not report.due_vectors
        finally:
            if self._background is not None:
                self._background.rest(is_needed=not is_whole)
        self._due, self._due_vectors = report.due_files, report.due_vectors
        self._rest_until = 0.0
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

    def _freshen(self) -> Freshness:
        """Look at the disk and index what changed, within the budget; never waits long for anybody else.

        One search at a time: another one must not rest on a look whose findings are still being indexed.
        """
        began = time.perf_counter()
        if not self._freshening.acquire(timeout=OWN_LOCK_SECONDS):
            return Freshness(self._due, f"files due: {self._due}, another search is indexing", _since(began))
        try:
            return self._freshen_alone(began)
        finally:
            self._freshening.release()

    def _freshen_alone(self, began: float) -> Freshness:
        changes = self.parts.workspace.changes
        is_resting = time.monotonic() < self._rest_until and changes == self._looked_after
        if is_resting and not self.parts.store.was_replaced(self._looked_at):
            return Freshness(self._due, "looked a moment ago", 0.0)
        now_ns = self.parts.sync.now_ns()
        opened_ns = now_ns - int((time.monotonic() - self._opened) * 1e9)
        since_ns, self._looked_ns = (self._looked_ns or opened_ns) - TICK_NS, now_ns
        scan, plan = look(self.parts.sync)
        self._blind, self._stuck = _blind(scan.failures), None
        wanted_for, self._due_vectors, makes_vectors = self._lag()
        self._looked_at, self._looked_after = self.parts.store.mark(), changes
        self._rest_until = time.monotonic() + REST_FACTOR * (time.perf_counter() - began)
        if not (plan.due or plan.recheck or makes_vectors):
            self._due = 0
            self._hand_over(wanted_for)
            return Freshness(0, "no file has changed", _since(began))
        self._due = plan.due
        go_on()
        return self._catch_up(plan, since_ns, began)

    def _catch_up(self, plan: SyncPlan, since_ns: int, began: float) -> Freshness:
        """Do what there is time for, and hand the rest over."""
        from clawmark.sync.run import SyncRequest, run_sync

        background = self._background
        is_much = plan.due > MANY_FILES and background is not None and background.is_at_files
        if is_much:
            self._rest_until = min(self._rest_until, time.monotonic() + MUCH_REST_SECONDS)
            if not changed_since(plan, since_ns).due:
                self._due = plan.due
                return Freshness(plan.due, f"files due: {plan.due}, being indexed in the background", _since(began))
        is_first = not (plan.unchanged or plan.check or plan.recheck)
        # A keeper that works makes the better vectors anyway; new words must not wait for it.
        is_busy = background is not None and background.is_busy
        seconds = FIRST_FRESHEN_SECONDS if is_first and not is_busy else FRESHEN_SECONDS
        is_helped = background is not None and background.is_at_work
        request = SyncRequest(
            seconds=BESIDE_KEEPER_SECONDS if is_helped else seconds,
            lock_timeout=OWN_LOCK_SECONDS if is_busy else 0.0,
            instant_only=is_busy,
            reason="search",
            since_ns=since_ns if is_much else 0,
            cancelled=has_left,
        )
        try:
            report = run_sync(self.parts.sync, request)
        except IndexBusy:
            self._due = plan.due
            self._hand_over("search")
            return Freshness(plan.due, f"files due: {plan.due}, another process is indexing", _since(began))
        except (IndexDamaged, IndexFromTheFuture):
            raise
        except IndexStoreError as error:
            # The disk is full, or the folder cannot be written to: what is there still answers.
            self._due, self._stuck = plan.due, Degraded(error.message, error.hint)
            return Freshness(plan.due, f"files due: {plan.due}, but the index cannot be written", _since(began))
        self._due = report.due_files
        self._blind = _blind(report.scan_failures)
        wanted_for, self._due_vectors, _ = self._lag()
        self._hand_over("search" if self._due else wanted_for)
        done = report.added + report.updated + report.deleted
        what = f"files brought up to date: {done}" if done else "no file has changed"
        due = f", due: {report.due_files}" if report.due_files else ""
        return Freshness(report.due_files, what + due, _since(began))

    def _hand_over(self, reason: str) -> None:
        if reason and self._background is not None:
            self._background.hand_over(reason)

    def _lag(self) -> tuple[str, int, bool]:
        """What the index lacks of what was chosen, told without loading anything that a search would not load.

        For what reason a whole sync is wanted, if one is; how many chunks wait for a vector of the best embedder; and
        whether a search makes vectors itself: those of a local embedder in use, or of a very small memory.
        """
        with self.parts.store.reading() as reader:
            wanted_for = "identity" if self._is_outdated(reader) else ""
            embedders = self.parts.embedders
            if not embedders:
                return wanted_for, 0, False
            ready = {space.identity: space.id for space in reader.spaces() if space.ready}
            due = {one.identity: reader.count_due_vectors(ready[one.identity]) for one in embedders if one.identity in ready}
            local = {one.identity for one in embedders if not one.traits.remote}
            makes_vectors = any(due.get(identity) for identity in local)
            best = due.get(embedders[-1].identity)
            if best is not None and local <= ready.keys():
                return wanted_for or ("search" if best else ""), best, makes_vectors
            chunks = reader.count_chunks()
            makes_vectors = makes_vectors or (not local <= ready.keys() and 0 < chunks <= FEW_CHUNKS)
            return wanted_for or ("identity" if chunks else ""), chunks if best is None else best, makes_vectors

    def _is_outdated(self, reader: Reader) -> bool:
        """Whether a rebuild is wanted: the text is cut otherwise, or somebody began one long ago and may be gone."""
        is_cut_otherwise = not reader.is_cut_by(self.parts.sync.chunker.name)
        building = reader.building()
        self._outdated = OUTDATED if (is_cut_otherwise or building) and self._background is None else None
        if building != self._building:
            self._building, self._building_since = building, time.monotonic()
        if building:
            return time.monotonic() - self._building_since > REBUILD_PATIENCE
        return is_cut_otherwise


def answering(parts: Parts, spaces: Sequence[Space], revived: dict[Identity, Embedder | None]) -> Sequence[Embedder]:
    """Who may answer, the best last: the chosen embedders and stand-ins; while the best is not complete, the one before.

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


def _blind(failures: Sequence[ScanFailure]) -> Degraded | None:
    """Said with every answer while a folder cannot be looked into: new notes in it are not found."""
    if not failures:
        return None
    path, reason = failures[0]
    more = f", and {len(failures) - 1} more" if len(failures) > 1 else ""
    what = path or "The workspace"
    return Degraded(f"{what} could not be listed: {reason}{more}.", "`clawmark doctor` says more; what was indexed is kept.")


def _since(began: float) -> float:
    return (time.perf_counter() - began) * 1000
