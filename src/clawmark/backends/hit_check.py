"""Compare the hits of an answer with their files as they are now.

A hit of a deleted file is dropped. In a changed file, its passage is looked for: if it is still
there, the hit is kept with its current lines."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from clawmark.engine.sync.plan import lies_under
from clawmark.model.errors import WorkspaceError
from clawmark.model.values import FileStat, Hit
from clawmark.workspace import Workspace

if TYPE_CHECKING:
    from clawmark.store.base import Snapshot


def changed_files(
    indexed: Mapping[str, FileStat], workspace: Workspace, unlisted: Sequence[str]
) -> list[str]:
    """Return the paths of files that are deleted or have changed since they were indexed.

    Files below `unlisted` folders, and files whose state cannot be read, are left out.
    """
    return [
        path
        for path, stat in indexed.items()
        if not _is_unchanged(path, stat, workspace)
        and not any(lies_under(path, folder) for folder in unlisted)
    ]


def _is_unchanged(path: str, indexed: FileStat, workspace: Workspace) -> bool:
    if workspace.is_unchanged(path, indexed):
        return True
    try:
        state = workspace.state_of(path)
    except (OSError, WorkspaceError):
        return True
    if state is None:
        return False
    if state.source == "sessions":  # a transcript only grows, so what was indexed is still there
        return state[4:] == indexed[2:4] and state.size >= indexed[0]
    return state[2:] == indexed[:4]


def standing_hits(
    hits: Sequence[Hit],
    changed: Collection[str],
    deleted: Collection[str],
    reader: Snapshot,
    workspace: Workspace,
) -> tuple[Hit, ...]:
    """Return the hits whose text is still in their file, with its current lines."""
    found = [
        hit if hit.path not in changed else _moved(hit, deleted, reader, workspace) for hit in hits
    ]
    return tuple(hit for hit in found if hit is not None)


def _moved(
    hit: Hit, deleted: Collection[str], reader: Snapshot, workspace: Workspace
) -> Hit | None:
    if hit.path in deleted:
        return None
    try:
        state = workspace.state_of(hit.path)
        if state is None:
            return hit  # its disk is not mounted, and its files are kept until it is
        if state.source == "sessions":
            return None  # replaced by another transcript
        text = workspace.read_document(state).text
    except (OSError, WorkspaceError):
        return None
    chunks = reader.chunks_of(hit.path, (hit.start_line, hit.end_line))
    moves = {_lines_moved(text, chunk.text, chunk.start_line) for chunk in chunks}
    move = moves.pop() if len(moves) == 1 else None
    if move is None:
        return None
    return hit._replace(
        start_line=hit.start_line + move,
        end_line=hit.end_line + move,
        snippet_start=hit.snippet_start + move,
        snippet_end=hit.snippet_end + move,
        snippet_ranges=tuple((first + move, last + move) for first, last in hit.snippet_ranges),
    )


def _lines_moved(text: str, passage: str, start_line: int) -> int | None:
    """Return how far a passage has moved to its nearest occurrence; None when it is gone."""
    lines = list[int]()
    at = text.find(passage)
    while at >= 0:
        lines.append(text.count("\n", 0, at) + 1)
        at = text.find(passage, at + 1)
    return min((line - start_line for line in lines), key=abs, default=None)
