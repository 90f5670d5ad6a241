"""What a sync works with, and the look that comes before it.

Every search looks; only a search that finds something due goes on to `run`, which brings the
chunkers and the rest with it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from clawmark.config.schema import Chunking, SessionDeltas
from clawmark.embed.base import Embedder
from clawmark.engine.sync.plan import plan_sync
from clawmark.model.values import Scan, SyncPlan
from clawmark.store.sqlite.store import Index, Reader
from clawmark.workspace import Workspace


class SyncParts(NamedTuple):
    """What a sync works with; built once by the composition root."""

    workspace: Workspace
    store: Index
    chunker: Chunking
    """How text is cut; part of the index's identity."""
    embedders: Sequence[Embedder]
    identity: Callable[[], dict[str, object]]
    """What the index depends on, worked out when asked; a different chunker than the index's means
    a rebuild.
    """
    now_ns: Callable[[], int]
    fallbacks: Sequence[Embedder] = ()
    """Embedders that are filled only when the best one fails."""
    deltas: SessionDeltas | None = None
    """How much a transcript grows before the watcher has it indexed again."""


FEW_CHUNKS = 16
"""A memory this small gets its best local vectors from the first search; a larger one from an
explicit sync.
"""


def look(parts: SyncParts, reader: Reader | None = None) -> tuple[Scan, SyncPlan]:
    """Compare disk and index without changing either; `reader` is a snapshot the caller has open.

    The index is read first: a file that another process creates and indexes during the scan must
    not look like a deleted one."""
    if reader is None:
        with parts.store.reading() as opened:
            return look(parts, opened)
    stats = reader.stats()
    scan = parts.workspace.scan()
    plan = plan_sync(scan, stats)
    if not plan.delete:
        return scan, plan
    # Rare, and worth a second look: a disk that is not mounted looks like one that was emptied.
    from clawmark.engine.sync.lost_roots import believed

    scan = believed(scan, reader.roots())
    return scan, plan_sync(scan, stats)


def look_ahead(parts: SyncParts, *, force: bool) -> tuple[Scan, SyncPlan]:
    """What a whole sync would do: the differences, or every file again where it would build the
    next generation.
    """
    scan, plan = look(parts)
    with parts.store.reading() as reader:
        if not force and not reader.building() and reader.is_cut_by(parts.chunker.name):
            return scan, plan
        built = {path: row[3:8] for path, row in reader.built().items()}
        delete = (*plan.delete, *reader.unsearched())
    return scan, plan_sync(scan, built)._replace(delete=delete, kept=plan.kept)
