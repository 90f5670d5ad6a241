"""Notices a root that was lost: an unmounted disk or a replaced folder looks like one from which
everything was deleted.

In: a scan, and the roots that held memory when the index was last brought in step. Out: the scan
with a failure for each root that is not believed, so that its files are kept; and the roots to
remember. Not believed is an empty folder that is another one than before. An emptied folder is
believed, and so is another one that holds memory: that is how a backup comes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clawmark.engine.sync.plan import lies_under
from clawmark.model.values import Scan, ScanFailure, is_cited_below, is_in_workspace

_GONE = "not there any more; if that is meant, `clawmark index --force` forgets its files"
_EMPTY = (
    "another folder than before, and empty; if that is meant, "
    "`clawmark index --force` forgets its files"
)


def believed(scan: Scan, before: Mapping[str, list[int]]) -> Scan:
    """The scan, with a failure for each root whose files must not be taken for deleted."""
    failed = {failure.path for failure in scan.failures}
    lost = [
        ScanFailure(path, _GONE if device < 0 else _EMPTY)
        for path, device, inode in scan.roots
        if path not in failed
        and before.get(path, [device, inode]) != [device, inode]
        and not _holds_memory(scan, path)
    ]
    return scan._replace(failures=(*lost, *scan.failures)) if lost else scan


def held_roots(
    scan: Scan, before: Mapping[str, list[int]], unsearched: Sequence[str] = ()
) -> dict[str, list[int]]:
    """What to remember of a look: the roots that hold memory, and those that could not be listed or
    were not believed.

    So are the roots of `unsearched` files, which the look was not about.
    """
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
