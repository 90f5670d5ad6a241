"""The parts that a local index works with, and which of its embedders can answer.

The composition root builds one `IndexParts`; search, sync and maintenance are handed it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from clawmark.embed.base import Choice, Embedder
from clawmark.engine.sync.scan import SyncParts
from clawmark.model.values import Degraded, Identity, Space
from clawmark.system.counters import Metrics, SharedCounts
from clawmark.workspace import Workspace

if TYPE_CHECKING:
    from clawmark.engine.search.rerank import RerankStep
    from clawmark.store.base import ManagedStore, Snapshot
else:
    # An annotation in quotes would be compiled at import: the first one costs a cold search 1 ms.
    ManagedStore = RerankStep = Snapshot = object

OUTDATED = Degraded(
    "The text was cut with other chunking settings, or a rebuild is not finished.",
    "Run `clawmark index`; the old passages answer until then.",
)


class Setup(NamedTuple):
    """Configured facts that `status`, `doctor` and `probe` report."""

    workspace: str
    """The folder as the user named it."""
    agent_id: str
    config_file: str
    state_dir: str
    sources: tuple[str, ...]
    """The configured kinds of sources, `memory` and `sessions`."""
    source_file: str
    """The list of the folders that were added."""
    vector_engine: str
    """Empty when vectors are switched off."""
    cache_limit: int
    warnings: tuple[str, ...]
    has_index: bool = True
    """False if the memory slot is empty: then nothing is indexed."""


class IndexParts(NamedTuple):
    """The workspace, its index and the embedders."""

    workspace: Workspace
    store: ManagedStore
    sync: SyncParts
    choice: Choice
    setup: Setup
    metrics: Metrics
    revive: Callable[[Identity], Embedder | None]
    """Makes the embedder of an older vector space, which answers until its successor is complete.
    """
    scout: Embedder | None = None
    """An embedder that takes microseconds per sentence, to pick snippets with."""
    rerank: RerankStep | None = None
    counts: SharedCounts | None = None
    """Counts events for all processes; None for a memory without a state folder."""

    @property
    def embedders(self) -> tuple[Embedder, ...]:
        """The chosen embedders, the best one last."""
        return self.choice.embedders

    @property
    def fallbacks(self) -> tuple[Embedder, ...]:
        return self.choice.fallbacks


def answering_embedders(
    parts: IndexParts, spaces: Sequence[Space], revived: dict[Identity, Embedder | None]
) -> Sequence[Embedder]:
    """Return the embedders that may answer, the best one last.

    While the space of the best one is incomplete, the embedder of an older complete space answers;
    `revived` caches those.
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


def active_embedder(parts: IndexParts, spaces: Sequence[Space]) -> Embedder | None:
    """Return the best embedder whose space is complete."""
    ready = {space.identity for space in spaces if space.ready}
    embedders = answering_embedders(parts, spaces, {})
    return next((one for one in reversed(embedders) if one.identity in ready), None)


def count_due_vectors(reader: Snapshot, embedders: Sequence[Embedder]) -> int:
    """Count the chunks without a vector of the best embedder."""
    if not embedders:
        return 0
    best = [space for space in reader.spaces() if space.identity == embedders[-1].identity]
    return reader.count_due(best[0].id) if best else reader.count_chunks()


def refusal_of(embedders: Sequence[Embedder]) -> Degraded | None:
    """Return why the best embedder is not called: its vectors do not fit the settings."""
    refusal: Degraded | None = getattr(embedders[-1], "refusal", None) if embedders else None
    return refusal
