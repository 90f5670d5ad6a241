"""Carries out the text half of a plan: files become rows and words, whole files at a time.

Reading, hashing and chunking happen outside the lock; one transaction then takes some whole files, so a crash leaves each
file old or new, never between, and a reader never waits. No transaction takes more than `CHUNKS_AT_ONCE` chunks: a larger
file is stored out of sight in several, and appears with the last. A file that cannot be read becomes a `FileFailure`.
Vectors are left to `sync.vectors`: new text is searchable by words the moment its transaction commits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from clawmark.config.schema import Chunking
from clawmark.documents import Chunk, Document
from clawmark.errors import IndexBusy, NotText, WorkspaceError
from clawmark.index.store import Index, Reader
from clawmark.reports import FileFailure, Progress
from clawmark.sync.outcome import NOT_TEXT, TextReport
from clawmark.text.chunk import chunk_text
from clawmark.text.dates import keyword_context
from clawmark.text.origin import without_comments
from clawmark.text.query import index_words
from clawmark.types import FileRow, FileState, SyncPlan
from clawmark.workspace import Workspace

# One commit costs as much as indexing eight chunks: 32 small files a commit index 2.5 times as fast as one.
BATCH_FILES = 32
BATCH_BYTES = 2_000_000
CHUNKS_AT_ONCE, FEWEST_AT_ONCE = 250, 25
"""How many chunks one transaction stores: some 30 ms. A rebuild of a small index takes fewer: their log takes room."""
PAUSE = 0.05
"""How often to look whether another process has finished the large file that both want to index."""


class _Prepared(NamedTuple):
    row: FileRow
    chunks: list[Chunk]
    is_new: bool


def apply_text(
    plan: SyncPlan,
    indexed: dict[str, FileRow],
    *,
    answering: dict[str, FileRow],
    reader: Workspace,
    index: Index,
    chunker: Chunking,
    now_ns: Callable[[], int],
    progress: Callable[[Progress], None],
    out_of_time: Callable[[], bool],
    building: int = 0,
    lock_timeout: float = 10.0,
    at_once: int = CHUNKS_AT_ONCE,
) -> TextReport:
    """Index what the plan names, in batches, until done or out of time; `building` is the number of a rebuild.

    What has another row by now than it has in `answering` was indexed by another process meanwhile, and stays when that one
    has read a later state of the file: nothing that was found once is lost to somebody who is slow.
    """
    todo = [*plan.add, *plan.check, *plan.recheck]
    added = updated = touched = chunks = done = unread = 0
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
                prepared.append(_Prepared(_row(Document(state, "", NOT_TEXT), now_ns(), 0), [], is_new=False))
                continue
            except WorkspaceError as error:
                failures.append(FileFailure(state.path, error.message))
                unread += 1
                continue
            known = indexed.get(state.path)
            if known is not None and known.hash == document.hash and not building:
                unchanged.append(_row(document, now_ns(), known.chunks))
            else:
                prepared.append(_prepare(document, chunker, now_ns(), is_new=known is None))
        for portion in _portions(prepared, at_once):
            _store(portion, answering, index, building, lock_timeout, at_once)
        if unchanged:
            with index.writing(timeout=lock_timeout) as writer:
                for row in unchanged:
                    writer.touch_file(row)
        added += sum(file.is_new for file in prepared)
        updated += sum(not file.is_new and file.row.hash != NOT_TEXT for file in prepared)
        chunks += sum(len(file.chunks) for file in prepared)
        touched += len(unchanged)
        done += len(batch)
        progress(Progress("text", done, len(todo), batch[-1].path, batch[-1].source))
    deleted = _delete(plan, index, lock_timeout)
    return TextReport(added, updated, touched, deleted, chunks, tuple(failures), len(todo) - done, unread=unread)


def _delete(plan: SyncPlan, index: Index, lock_timeout: float) -> int:
    """Forget what is gone; what another process has indexed anew meanwhile is not."""
    was = dict(zip(plan.delete, plan.was, strict=False))
    deleted = 0
    for start in range(0, len(plan.delete), BATCH_FILES):
        with index.writing(timeout=lock_timeout) as writer:
            some = plan.delete[start : start + BATCH_FILES]
            now = writer.files(some)
            for path in some:
                if path not in was or path not in now or now[path][3:8] == was[path]:
                    writer.drop_file(path)
                    deleted += 1
    return deleted


def _prepare(document: Document, chunker: Chunking, seen_ns: int, *, is_new: bool) -> _Prepared:
    chunks = chunk_text(document.text, chunker.mode, chunker.tokens, chunker.overlap)
    return _Prepared(_row(document, seen_ns, len(chunks)), chunks, is_new)


def _portions(files: Iterable[_Prepared], at_once: int) -> Iterator[list[_Prepared]]:
    """Files that fit into one transaction together; a file too large for one is alone."""
    portion: list[_Prepared] = []
    size = 0
    for file in files:
        if portion and size + len(file.chunks) > at_once:
            yield portion
            portion, size = [], 0
        portion.append(file)
        size += len(file.chunks)
    if portion:
        yield portion


def _store(
    portion: list[_Prepared],
    answering: dict[str, FileRow],
    index: Index,
    building: int,
    lock_timeout: float,
    at_once: int,
) -> None:
    row, chunks, _ = portion[0]
    if len(chunks) > at_once:
        with index.reading() as reader:
            if _overtaken(reader, portion, answering):
                return
        store_large(row, chunks, partial(words_of, row.path), index, building, lock_timeout, at_once)
        return
    words = [words_of(file.row.path, file.chunks) for file in portion]
    with index.writing(timeout=lock_timeout) as writer:
        overtaken = _overtaken(writer, portion, answering)
        for file, columns in zip(portion, words, strict=True):
            if file.row.path not in overtaken:
                writer.put_file(file.row, file.chunks, columns, building=building)


def _overtaken(reader: Reader, portion: Sequence[_Prepared], answering: dict[str, FileRow]) -> set[str]:
    """The files of which another process has indexed a later state since the plan was made."""
    now = reader.files([file.row.path for file in portion])
    return {
        row.path
        for row, _, _ in portion
        if row.path in now
        and now[row.path] != answering.get(row.path)
        and now[row.path].hash != row.hash
        and now[row.path].mtime_ns >= row.mtime_ns
    }


def store_large(
    row: FileRow,
    chunks: Sequence[Chunk],
    words: Callable[[Sequence[Chunk]], list[tuple[str, str]]],
    index: Index,
    building: int,
    lock_timeout: float,
    at_once: int = CHUNKS_AT_ONCE,
) -> None:
    """Store a file in several transactions; when another process is at it, its work is waited for.

    That may take as long as the work does: what stops growing is taken over after a minute. Who has no time to wait for the
    lock does not wait for this either.
    """
    while True:
        try:
            with index.writing(timeout=lock_timeout) as writer:
                staged = writer.stage_file(row, building=building)
            for start in range(0, len(chunks), at_once):
                some = chunks[start : start + at_once]
                columns = words(some)
                with index.writing(timeout=lock_timeout) as writer:
                    writer.add_chunks(staged, some, columns)
            with index.writing(timeout=lock_timeout) as writer:
                writer.finish_file(staged)
            return
        except IndexBusy:
            with index.reading() as reader:
                known = (reader.built() if building else reader.files([row.path])).get(row.path)
            if known is not None and known.hash == row.hash:
                return
            if lock_timeout <= 0:
                raise
            time.sleep(PAUSE)


def words_of(path: str, chunks: Sequence[Chunk]) -> list[tuple[str, str]]:
    """What the full-text index gets of each chunk: its words, and those of its heading and date."""
    return [(index_words(without_comments(chunk.text)), keyword_context(path, chunk.heading)) for chunk in chunks]


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
