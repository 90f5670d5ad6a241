"""Carries out the text half of a plan: files become rows and words, whole files at a time.

Reading, hashing and chunking happen outside the lock; one transaction then takes up to 32 whole files, so a crash leaves
each file old or new, never between, and a reader never waits. A file that cannot be read becomes a `FileFailure`.
Vectors are left to `sync.vectors`: new text is searchable by words the moment its transaction commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from clawmark.config.schema import Chunking
from clawmark.documents import Chunk, Document
from clawmark.errors import NotText, WorkspaceError
from clawmark.index.store import Index
from clawmark.reports import FileFailure, Progress
from clawmark.sync.outcome import NOT_TEXT, TextReport
from clawmark.text.chunk import chunk_text
from clawmark.text.dates import keyword_context
from clawmark.text.query import index_words
from clawmark.types import FileRow, FileState, SyncPlan
from clawmark.workspace import Workspace

# One commit costs as much as indexing eight chunks: 32 small files a commit index 2.5 times as fast as one.
BATCH_FILES = 32
BATCH_BYTES = 2_000_000


class _Prepared(NamedTuple):
    row: FileRow
    chunks: list[Chunk]
    words: list[tuple[str, str]]
    is_new: bool


def apply_text(
    plan: SyncPlan,
    indexed: dict[str, FileRow],
    *,
    reader: Workspace,
    index: Index,
    chunker: Chunking,
    now_ns: Callable[[], int],
    progress: Callable[[Progress], None],
    out_of_time: Callable[[], bool],
    building: bool = False,
    lock_timeout: float = 10.0,
) -> TextReport:
    """Index what the plan names, in batches, until done or out of time."""
    todo = [*plan.add, *plan.check, *plan.recheck]
    added = updated = touched = chunks = done = 0
    failures: list[FileFailure] = []
    for batch in _batches(todo):
        if done and out_of_time():
            break
        prepared, unchanged = [], []
        for state in batch:
            try:
                document = reader.read_document(state)
            except NotText as error:
                failures.append(FileFailure(state.path, error.message))
                prepared.append(_Prepared(_row(Document(state, "", NOT_TEXT), now_ns(), 0), [], [], is_new=False))
                continue
            except WorkspaceError as error:
                failures.append(FileFailure(state.path, error.message))
                continue
            known = indexed.get(state.path)
            if known is not None and known.hash == document.hash and not building:
                unchanged.append(_row(document, now_ns(), known.chunks))
            else:
                prepared.append(_prepare(document, chunker, now_ns(), is_new=known is None))
        if prepared or unchanged:
            with index.writing(timeout=lock_timeout) as writer:
                for file in prepared:
                    writer.put_file(file.row, file.chunks, file.words, building=building)
                for row in unchanged:
                    writer.touch_file(row)
        added += sum(file.is_new for file in prepared)
        updated += sum(not file.is_new and file.row.hash != NOT_TEXT for file in prepared)
        chunks += sum(len(file.chunks) for file in prepared)
        touched += len(unchanged)
        done += len(batch)
        progress(Progress("text", done, len(todo), batch[-1].path))
    deleted = _delete(plan.delete, index, lock_timeout)
    return TextReport(added, updated, touched, deleted, chunks, tuple(failures), len(todo) - done)


def _delete(paths: tuple[str, ...], index: Index, lock_timeout: float) -> int:
    for start in range(0, len(paths), BATCH_FILES):
        with index.writing(timeout=lock_timeout) as writer:
            for path in paths[start : start + BATCH_FILES]:
                writer.drop_file(path)
    return len(paths)


def _prepare(document: Document, chunker: Chunking, seen_ns: int, *, is_new: bool) -> _Prepared:
    chunks = chunk_text(document.text, chunker.mode, chunker.tokens, chunker.overlap)
    path = document.state.path
    words = [(index_words(chunk.text), keyword_context(path, chunk.heading)) for chunk in chunks]
    return _Prepared(_row(document, seen_ns, len(chunks)), chunks, words, is_new)


def _row(document: Document, seen_ns: int, chunks: int) -> FileRow:
    state = document.state
    return FileRow(
        state.path,
        state.source,
        document.hash,
        state.size,
        state.mtime_ns,
        state.inode,
        state.device,
        seen_ns,
        chunks,
    )


def _batches(states: Iterable[FileState]) -> Iterator[list[FileState]]:
    batch: list[FileState] = []
    size = 0
    for state in states:
        if batch and (len(batch) >= BATCH_FILES or size + state.size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(state)
        size += state.size
    if batch:
        yield batch
