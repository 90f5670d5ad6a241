"""What a sync needs, and the comparison of disk and index that precedes it.

Every search compares; only one that finds something due imports `run`, with the chunkers and the
rest."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from clawmark.config.schema import Chunking, SessionDeltas
from clawmark.embed.base import Embedder
from clawmark.engine.sync.plan import flag_lost_roots, plan_sync
from clawmark.model.values import Scan, SyncPlan
from clawmark.workspace import Workspace

if TYPE_CHECKING:
    from clawmark.engine.sync.media import MediaSync
    from clawmark.model.sync_report import Progress
    from clawmark.store.base import IndexStore, SearchSnapshot, Snapshot
else:
    # An annotation in quotes would be compiled at import: the first one costs a cold search 1 ms.
    IndexStore = MediaSync = Progress = SearchSnapshot = Snapshot = object


class SyncParts(NamedTuple):
    """What a sync needs; built once by the composition root."""

    workspace: Workspace
    store: IndexStore
    chunker: Chunking
    """How text is chunked; part of the index's identity."""
    embedders: Sequence[Embedder]
    identity: Callable[[], dict[str, object]]
    """Returns what the index depends on; another chunker than the index's requires a rebuild."""
    now_ns: Callable[[], int]
    fallbacks: Sequence[Embedder] = ()
    """Embedders whose spaces are filled only if the best one fails."""
    deltas: SessionDeltas | None = None
    """How much a transcript must grow before the watcher has it indexed again."""
    media: MediaSync | None = None
    """Reads images and audio files, if they are indexed."""
    on_text: Callable[[Sequence[tuple[str, str]]], None] | None = None
    """Called with the path and the text of memory files whose text is new to the index."""


FEW_CHUNKS = 16
"""A memory with at most this many chunks gets its best local vectors during the first search."""


def look(parts: SyncParts, snapshot: Snapshot | None = None) -> tuple[Scan, SyncPlan]:
    """Compare disk and index without changing either; the caller may have a `snapshot` open.

    The index is read first: a file that another process creates and indexes during the scan must
    not look deleted."""
    if snapshot is None:
        with parts.store.snapshot() as opened:
            return look(parts, opened)
    with _garbage_collection_paused():
        stats = snapshot.stats()
        scan = parts.workspace.scan()
        plan = plan_sync(scan, stats)
        if not plan.delete:
            return scan, plan
        # A disk that is not mounted looks like one that was emptied.
        scan = flag_lost_roots(scan, snapshot.facts("roots"))
        return scan, plan_sync(scan, stats)


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """Keep the garbage collector from going through the files that are being listed: a tenth of
    the time of a look at 200,000 of them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def look_ahead(parts: SyncParts, *, force: bool) -> tuple[Scan, SyncPlan]:
    """Return what a whole sync would do: the differences, or all files if it would rebuild."""
    scan, plan = look(parts)
    with parts.store.snapshot() as snapshot:
        if not force and not snapshot.building and is_chunked_by(snapshot, parts.chunker.name):
            return scan, plan
        built = {path: row[3:8] for path, row in snapshot.files(which="rebuilt").items()}
        delete = (*plan.delete, *snapshot.files(which="unsearched"))
    return scan, plan_sync(scan, built)._replace(delete=delete, kept=plan.kept)


def is_chunked_by(snapshot: SearchSnapshot, chunker: str) -> bool:
    """Return whether the index was made with this chunker, or with none yet."""
    return str(snapshot.facts("identity").get("chunker", chunker)) == chunker


class SyncRequest(NamedTuple):
    """How much of the work to do now."""

    force: bool = False
    instant_only: bool = False
    seconds: float | None = None
    lock_timeout: float = 10.0
    progress: Callable[[Progress], None] | None = None
    reason: str = "manual"
    """What requested the sync, for `status`: one of `worker.REASONS`."""
    cancelled: Callable[[], bool] | None = None
    """Checked between batches: if it returns true, the sync stops, and what is left stays due."""
    since_ns: int = 0
    """Index only what changed since this moment, and no vectors; the rest stays due because the
    background worker is indexing it."""
    look: Callable[[SyncParts], tuple[Scan, SyncPlan]] = look
    """Compares disk and index; a caller that has just done so passes the result."""
    deltas: bool = False
    """Skip transcripts that grew by less than `sync.sessions.deltaBytes` and `deltaMessages`; they
    stay due."""
