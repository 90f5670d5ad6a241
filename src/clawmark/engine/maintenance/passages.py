"""List the passages that the index holds of one file."""

from __future__ import annotations

from clawmark.engine.parts import IndexParts
from clawmark.model.documents import IndexedFile, Passage


def indexed_file(parts: IndexParts, path: str) -> IndexedFile:
    """Return the passages of a file in order; none if it is not indexed."""
    with parts.store.snapshot() as snapshot:
        rows = snapshot.chunks_of(path)
        stat = snapshot.stats([path]).get(path)
    state = parts.workspace.state_of(path)
    is_current = stat is not None and state is not None and state[2:] == stat[:4]
    passages = [Passage(one.start_line, one.end_line, one.heading) for one in rows]
    return IndexedFile(tuple(sorted(passages)), is_current)
