"""The built-in backend: a workspace, its SQLite index and the embedders, working as one.

It is handed its parts and owns them: closing it closes the index and the workspace. Searching brings the index up to date
first, within a budget, and answers from what is there; only `sync` does unbounded work.
"""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from clawmark.embed.base import Embedder
from clawmark.errors import IndexBusy
from clawmark.index.store import Index
from clawmark.observe import Metrics
from clawmark.search.legs import Asked, ask
from clawmark.search.pipeline import Freshness, search
from clawmark.sync.look import FEW_CHUNKS, SyncParts, look
from clawmark.text.query import clean_query
from clawmark.types import Degraded, Found, Identity, Query, Scan, Space, SyncPlan
from clawmark.workspace import Workspace

if TYPE_CHECKING:
    from clawmark.documents import Excerpt
    from clawmark.reports import SyncReport
    from clawmark.sync.run import SyncRequest

# A search may spend this long on bringing the index up to date; the very first one may take longer to answer at all.
FRESHEN_SECONDS = 1.5
FIRST_FRESHEN_SECONDS = 10.0
# A warm process looks at the disk again only after it has rested this many times as long as the last look took.
REST_FACTOR = 20


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


class BuiltinBackend:
    """Search, read and sync over one workspace."""

    def __init__(self, parts: Parts, *, freshen: bool) -> None:
        self.parts = parts
        self._freshens = freshen
        self._rest_until = 0.0
        self._due = 0
        self._revived: dict[Identity, Embedder | None] = {}

    def search(self, query: Query, *, freshen: bool = True) -> Found:
        """Answer from an index that is as fresh as the budget allows."""
        freshness = self._freshen() if freshen and self._freshens else Freshness(self._due, "not asked for", 0.0)
        query = query._replace(text=clean_query(query.text))
        asked = self._ask(query.text)
        with self.parts.store.reading() as reader:
            found = search(query, reader=reader, asked=asked, scout=self.parts.scout, freshness=freshness)
        self.parts.metrics.count("searches")
        degraded = found.degraded or self.parts.degraded
        return found if degraded is None else found._replace(degraded=degraded)

    def _ask(self, text: str) -> Asked:
        """The query's vectors; the index is only looked at to see who can answer."""
        if not text or not self.parts.embedders:
            return ask(text, (), ())
        began = time.perf_counter()
        with self.parts.store.reading() as reader:
            spaces = reader.spaces()
        return ask(text, self._answering(spaces), spaces)._replace(milliseconds=_since(began))

    def read(self, path: str, start: int | None, lines: int | None) -> "Excerpt":
        """Some lines of a memory file, bounded."""
        return self.parts.workspace.read_lines(path, start, lines)

    def plan(self) -> tuple[SyncPlan, Scan]:
        """What a sync would do, without doing it."""
        scan, plan = look(self.parts.sync)
        return plan, scan

    def sync(self, request: "SyncRequest") -> "SyncReport":
        """Bring the index in step with the disk."""
        from clawmark.sync.run import run_sync

        report = run_sync(self.parts.sync, request)
        self._due = report.due_files
        self._rest_until = 0.0
        self.parts.metrics.count("syncs")
        return report._replace(degraded=report.degraded or self.parts.degraded)

    def close(self) -> None:
        for embedder in (*self.parts.embedders, *self.parts.fallbacks):
            if hasattr(embedder, "close"):
                embedder.close()
        self.parts.store.close()
        self.parts.workspace.close()

    def _answering(self, spaces: Sequence[Space]) -> Sequence[Embedder]:
        """Who may answer: the chosen embedders and their stand-ins; the one before, while the chosen one is not complete."""
        chosen = self.parts.embedders
        if len(chosen) < 2:
            return (*chosen, *reversed(self.parts.fallbacks))
        instant, best = chosen[:-1], chosen[-1]
        ready = [space.identity for space in spaces if space.ready]
        if best.identity in ready:
            return (*instant, *reversed(self.parts.fallbacks), best)
        known = {embedder.identity for embedder in (*chosen, *self.parts.fallbacks)}
        for identity in ready:
            if identity not in known and identity not in self._revived:
                self._revived[identity] = self.parts.revive(identity)
        older = [made for identity in ready if (made := self._revived.get(identity)) is not None]
        return (*instant, *reversed(self.parts.fallbacks), *older)

    def _freshen(self) -> Freshness:
        """Look at the disk and index what changed, within the budget; never waits for another process."""
        began = time.perf_counter()
        if time.monotonic() < self._rest_until:
            return Freshness(self._due, "looked a moment ago", 0.0)
        _, plan = look(self.parts.sync)
        self._rest_until = time.monotonic() + REST_FACTOR * (time.perf_counter() - began)
        if not (plan.due or plan.recheck or self._has_due_vectors()):
            self._due = 0
            return Freshness(0, "no file has changed", _since(began))
        from clawmark.sync.run import SyncRequest, run_sync

        is_first = not (plan.unchanged or plan.check or plan.recheck)
        seconds = FIRST_FRESHEN_SECONDS if is_first else FRESHEN_SECONDS
        try:
            report = run_sync(self.parts.sync, SyncRequest(seconds=seconds, lock_timeout=0.0))
        except IndexBusy:
            self._due = plan.due
            return Freshness(plan.due, f"files due: {plan.due}, another process is indexing", _since(began))
        self._due = report.due_files
        done = report.added + report.updated + report.deleted
        what = f"files brought up to date: {done}" if done else "no file has changed"
        due = f", due: {report.due_files}" if report.due_files else ""
        return Freshness(report.due_files, what + due, _since(began))

    def _has_due_vectors(self) -> bool:
        """Whether a space in use lacks vectors, or a very small memory its first ones; else that is left to `sync`."""
        wanted = {embedder.identity for embedder in self.parts.embedders if not embedder.traits.remote}
        if not wanted:
            return False
        with self.parts.store.reading() as reader:
            ready = {space.identity: space.id for space in reader.spaces() if space.ready}
            if wanted - ready.keys() and 0 < reader.state().chunks <= FEW_CHUNKS:
                return True
            return any(reader.count_due_vectors(number) for identity, number in ready.items() if identity in wanted)


def _since(began: float) -> float:
    return (time.perf_counter() - began) * 1000
