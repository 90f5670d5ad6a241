"""Compares the hits of an answer with their files as they are now.

In: hits, and the states in which their files were indexed. Out: the hits that hold. A hit of a
deleted file is left out. In a changed file the passage is looked for: where it still stands, the
hit is kept with its present lines."""

from collections.abc import Collection, Mapping, Sequence

from clawmark.engine.sync.plan import lies_under
from clawmark.model.errors import WorkspaceError
from clawmark.model.values import FileStat, Hit
from clawmark.store.sqlite.store import Reader
from clawmark.workspace import Workspace


def changed_files(
    indexed: Mapping[str, FileStat], workspace: Workspace, unlisted: Sequence[str]
) -> list[str]:
    """The paths whose files are gone or not as they were indexed; files whose state cannot be read
    are not included.
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
    if state.source == "sessions":  # a transcript only grows; what was indexed of it stands
        return state[4:] == indexed[2:4] and state.size >= indexed[0]
    return state[2:] == indexed[:4]


def standing_hits(
    hits: Sequence[Hit],
    suspects: Collection[str],
    gone: Collection[str],
    reader: Reader,
    workspace: Workspace,
) -> tuple[Hit, ...]:
    """The hits whose text stands in its file now, with its present lines.

    `suspects` are the files that are not as they were indexed, `gone` those that a look found
    deleted."""
    found = [
        hit if hit.path not in suspects else _standing(hit, gone, reader, workspace) for hit in hits
    ]
    return tuple(hit for hit in found if hit is not None)


def _standing(hit: Hit, gone: Collection[str], reader: Reader, workspace: Workspace) -> Hit | None:
    if hit.path in gone:
        return None
    try:
        state = workspace.state_of(hit.path)
        if state is None:
            return hit  # its disk is away, and its files are kept until it is back
        if state.source == "sessions":
            return None  # replaced by another transcript
        text = workspace.read_document(state).text
    except (OSError, WorkspaceError):
        return None
    moves = {
        _move(text, row.text, row.start_line)
        for row in reader.chunks_of(hit.path, (hit.start_line, hit.end_line))
    }
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


def _move(text: str, passage: str, start_line: int) -> int | None:
    """By how many lines a passage has moved in a text, to the nearest place where it stands; None
    when it is gone.
    """
    lines = list[int]()
    at = text.find(passage)
    while at >= 0:
        lines.append(text.count("\n", 0, at) + 1)
        at = text.find(passage, at + 1)
    return min((line - start_line for line in lines), key=abs, default=None)
