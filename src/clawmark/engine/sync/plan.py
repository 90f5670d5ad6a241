"""Decides what has to happen for the index to match the disk.

A scan and the indexed rows come in, a `SyncPlan` goes out; nothing is read or written here. `dirty`
is never stored: it is this comparison, made anew every time."""

from __future__ import annotations

from collections.abc import Mapping

from clawmark.model.values import FileStat, FileState, Scan, SyncPlan, is_cited_below

# A file changed this shortly before it was read may change again within the same clock tick and
# keep size and time.
GRAIN_NS = 2_000_000_000


def plan_sync(scan: Scan, indexed: Mapping[str, FileStat]) -> SyncPlan:
    """Compare what is on disk with what is indexed, by size, time and inode."""
    add: list[FileState] = []
    check: list[FileState] = []
    recheck: list[FileState] = []
    unchanged = 0
    for state in scan.files:
        stat = indexed.get(state.path)
        if stat is None:
            add.append(state)
        elif state[2:] != stat[:4]:  # size, mtime_ns, inode, device
            check.append(state)
        elif abs(stat[4] - stat[1]) < GRAIN_NS <= scan.taken_ns - stat[1]:
            # Once a look from outside the grain has confirmed the hash, `seen_ns` moves on and the
            # file counts as settled.
            recheck.append(state)
        else:
            unchanged += 1
    # Every file seen is in one of these; when as many were known as are indexed, none is missing.
    is_all_there = unchanged + len(check) + len(recheck) == len(indexed)
    delete, kept = ((), ()) if is_all_there else _missing(scan, indexed)
    return SyncPlan(
        add=tuple(add),
        check=tuple(check),
        recheck=tuple(recheck),
        delete=delete,
        unchanged=unchanged,
        kept=kept,
        was=tuple(map(indexed.__getitem__, delete)),
    )


def changed_since(plan: SyncPlan, moment_ns: int) -> SyncPlan:
    """The part of a plan that came about after a moment, and what is gone: quick to do, and nobody
    else knows of it yet.
    """
    add, check = (
        tuple(state for state in states if state.mtime_ns >= moment_ns)
        for states in (plan.add, plan.check)
    )
    return plan._replace(add=add, check=check, recheck=())


def _missing(
    scan: Scan, indexed: Mapping[str, FileStat]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Indexed paths that were not seen: gone, or hidden behind a folder that could not be listed."""
    seen = {state.path for state in scan.files}
    missing = [path for path in indexed if path not in seen]
    blind = [failure.path.rstrip("/") for failure in scan.failures]
    kept = {path for path in missing if any(lies_under(path, folder) for folder in blind)}
    return tuple(path for path in missing if path not in kept), tuple(sorted(kept))


def lies_under(path: str, folder: str) -> bool:
    """Whether a path is a folder's or below it; an empty folder is the workspace."""
    return folder in ("", ".") or path == folder or is_cited_below(path, folder)
