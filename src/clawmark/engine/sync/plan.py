"""Decides what has to be done for the index to match the disk; reads and writes nothing.

What is due is never stored: it is computed from a scan and the indexed rows every time.

A lost root, such as an unmounted disk or a replaced folder, looks as if all its files were deleted.
An empty folder with another device or inode than at the last sync therefore gets a scan failure, so
that its files are kept. An emptied folder is accepted, and so is another folder that holds memory:
that is how a restored backup looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clawmark.model.values import (
    FileStat,
    FileState,
    Scan,
    ScanFailure,
    SyncPlan,
    is_cited_below,
    is_in_workspace,
)
from clawmark.workspace.places import ROOT_FILES

# A file changed this shortly before it was read may change again within the same clock tick, with
# the same size and time.
GRAIN_NS = 2_000_000_000
DAY_NS = 86_400_000_000_000

_GONE = "not there any more; if that is meant, `clawmark index --force` forgets its files"
_EMPTY = (
    "another folder than before, and empty; if that is meant, "
    "`clawmark index --force` forgets its files"
)


def plan_sync(scan: Scan, indexed: Mapping[str, FileStat]) -> SyncPlan:
    """Compare a scan with the indexed files by size, time and inode."""
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
            # When a scan after the clock tick has confirmed the hash, `seen_ns` is updated and the
            # file counts as settled.
            recheck.append(state)
        else:
            unchanged += 1
    # Every scanned file is in one of these lists; if as many were known as are indexed, none is
    # missing.
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


def newest_first(states: Sequence[FileState]) -> list[FileState]:
    """Return files in the order in which they are indexed: MEMORY.md, then the notes named after a
    day, newest first, then the others by the day of their last change."""
    first: list[FileState] = []
    days: list[tuple[str, FileState]] = []
    others: list[FileState] = []
    for state in states:
        name = state.path[state.path.rfind("/") + 1 :]
        if state.path in ROOT_FILES:
            first.append(state)
        elif name[4:5] == "-" == name[7:8] and name[:4].isdigit():
            days.append((name, state))
        else:
            others.append(state)
    days.sort(reverse=True)
    others.sort(key=lambda state: state.mtime_ns // DAY_NS, reverse=True)
    return [*first, *(state for _, state in days), *others]


def changed_since(plan: SyncPlan, moment_ns: int) -> SyncPlan:
    """Return the part of a plan that changed after a moment, and the deletions."""
    add, check = (
        tuple(state for state in states if state.mtime_ns >= moment_ns)
        for states in (plan.add, plan.check)
    )
    return plan._replace(add=add, check=check, recheck=())


def _missing(
    scan: Scan, indexed: Mapping[str, FileStat]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the indexed paths that were not seen: deleted, and those below a folder that could not
    be listed."""
    seen = {state.path for state in scan.files}
    missing = [path for path in indexed if path not in seen]
    blind = [failure.path.rstrip("/") for failure in scan.failures]
    kept = {path for path in missing if any(lies_under(path, folder) for folder in blind)}
    return tuple(path for path in missing if path not in kept), tuple(sorted(kept))


def lies_under(path: str, folder: str) -> bool:
    """Return whether a path is a folder or below it; an empty folder means the workspace."""
    return folder in ("", ".") or path == folder or is_cited_below(path, folder)


def flag_lost_roots(scan: Scan, before: Mapping[str, list[int]]) -> Scan:
    """Return the scan with a failure for each root whose files must not be treated as deleted."""
    failed = {failure.path for failure in scan.failures}
    lost = [
        ScanFailure(path, _GONE if device < 0 else _EMPTY)
        for path, device, inode in scan.roots
        if path not in failed
        and before.get(path, [device, inode]) != [device, inode]
        and not _holds_memory(scan, path)
    ]
    return scan._replace(failures=(*lost, *scan.failures)) if lost else scan


def roots_to_store(
    scan: Scan, before: Mapping[str, list[int]], unsearched: Sequence[str] = ()
) -> dict[str, list[int]]:
    """Return the roots to store: those that hold memory, could not be listed or were not accepted.

    The roots of `unsearched` files are kept too, since the scan does not cover them."""
    failed = {failure.path for failure in scan.failures}
    kept = {
        path: identity
        for path, identity in before.items()
        if path in failed or "" in failed or any(lies_under(file, path) for file in unsearched)
    }
    return kept | {
        path: [device, inode] for path, device, inode in scan.roots if _holds_memory(scan, path)
    }


def _holds_memory(scan: Scan, root: str) -> bool:
    if not root:
        return any(state.source == "memory" and is_in_workspace(state.path) for state in scan.files)
    return any(is_cited_below(state.path, root) for state in scan.files)
