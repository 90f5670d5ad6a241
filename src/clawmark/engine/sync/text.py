"""Carries out the text half of a plan: files become rows and words, whole files at a time.

Reading, hashing and chunking happen outside the lock; one transaction then takes some whole files,
so a crash leaves each file old or new, never between, and a reader never waits. No transaction
takes more than `CHUNKS_AT_ONCE` chunks: a larger file is stored out of sight in several, and
appears with the last. A file that cannot be read becomes a `FileFailure`. Vectors are left to
`sync.vectors`: new text is searchable by words the moment its transaction commits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from clawmark.config.schema import Chunking
from clawmark.engine.sync.outcome import NOT_TEXT, TextReport, added_up
from clawmark.model.documents import Chunk, Document
from clawmark.model.errors import IndexBusy, NotText, WorkspaceError
from clawmark.model.reports import FileFailure, Progress
from clawmark.model.values import FileRow, FileState, SyncPlan
from clawmark.store.sqlite.store import Index, Reader
from clawmark.text.chunking.chunks import chunk_text
from clawmark.text.chunking.days import with_days
from clawmark.text.dates import keyword_context
from clawmark.text.keywords.query import index_words
from clawmark.text.recalled.origin import without_comments
from clawmark.text.transcripts.dialogue import (
    find_statements,
    without_note_header,
    without_note_title,
)
from clawmark.workspace import Workspace

FILES_AT_ONCE, BYTES_AT_ONCE = 64, 2_000_000
CHUNKS_AT_ONCE, FEWEST_AT_ONCE = 300, 25
"""How much one transaction stores: some 30 ms. A commit costs as much as indexing eight chunks, so
small files share one. Who has little time takes half as much, and a rebuild of a small index still
less: its log takes room."""
STAGING_SECONDS = 600.0
"""How long to wait for another process that stores a large file; one of 64 MB takes about a minute.
"""
TRIES, PAUSE = 20, 0.05
"""How often storing a large file is tried again, and the seconds between two tries."""


class _Prepared(NamedTuple):
    """A file that was looked at, and what there is to store of it."""

    state: FileState
    row: FileRow | None
    """Nothing when it could not be read now."""
    chunks: list[Chunk] | None = None
    """Nothing when the index has this text already."""
    is_new: bool = False
    failure: FileFailure | None = None


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
    """Index what the plan names, some files at a time, until done or out of time; `building` is the
    number of a rebuild.

    What has another row by now than it has in `answering` was indexed by another process meanwhile,
    and stays when that one has read a later state of the file: nothing that was found once is lost
    to somebody who is slow."""

    def prepare(state: FileState) -> _Prepared:
        try:
            document = reader.read_document(state)
        except NotText as error:
            row = _row(Document(state, "", NOT_TEXT), now_ns(), 0)
            return _Prepared(state, row, [], failure=FileFailure(state.path, error.message))
        except WorkspaceError as error:
            return _Prepared(state, None, failure=FileFailure(state.path, error.message))
        known = indexed.get(state.path)
        if known is not None and known.hash == document.hash and not building:
            return _Prepared(state, _row(document, now_ns(), known.chunks))
        chunks = dated_chunks(state.path, document.text, chunker)
        return _Prepared(state, _row(document, now_ns(), len(chunks)), chunks, is_new=known is None)

    todo = [*plan.add, *plan.check, *plan.recheck]
    report = TextReport(
        added=0, updated=0, touched=0, deleted=0, chunks=0, failures=(), due_files=len(todo)
    )
    for portion in _portions(map(prepare, todo), at_once):
        _store(portion, answering, index, building, lock_timeout, at_once)
        report = added_up(report, _told(portion))
        last = portion[-1].state
        progress(
            Progress(
                stage="text",
                done=len(todo) - report.due_files,
                total=len(todo),
                label=last.path,
                source=last.source,
            )
        )
        if out_of_time():
            break
    return report._replace(deleted=_delete(plan, index, lock_timeout))


def dated_chunks(path: str, text: str, chunker: Chunking) -> list[Chunk]:
    """Every chunk a memory file makes, with its days: what its rows must be."""
    return with_days(
        chunk_text(text, chunker.mode, chunker.tokens, chunker.overlap, path), path, text
    )


def _told(portion: Sequence[_Prepared]) -> TextReport:
    """What storing some files came to: as many are due no more."""
    indexed = [file for file in portion if file.chunks is not None]
    return TextReport(
        added=sum(file.is_new for file in indexed),
        updated=sum(not file.is_new and file.failure is None for file in indexed),
        touched=sum(file.chunks is None and file.row is not None for file in portion),
        deleted=0,
        chunks=sum(len(file.chunks or ()) for file in indexed),
        failures=tuple(file.failure for file in portion if file.failure is not None),
        due_files=-len(portion),
        unread=sum(file.row is None for file in portion),
    )


def _delete(plan: SyncPlan, index: Index, lock_timeout: float) -> int:
    """Forget what is gone; what another process has indexed anew meanwhile is not."""
    was = dict(zip(plan.delete, plan.was, strict=False))
    deleted = 0
    for start in range(0, len(plan.delete), FILES_AT_ONCE):
        with index.writing(timeout=lock_timeout) as writer:
            some = plan.delete[start : start + FILES_AT_ONCE]
            now = writer.files(some)
            for path in some:
                if path not in was or path not in now or now[path][3:8] == was[path]:
                    writer.drop_file(path)
                    deleted += 1
    return deleted


def _portions(files: Iterable[_Prepared], at_once: int) -> Iterator[list[_Prepared]]:
    """Files that fit into one transaction together; a file too large for one is alone."""
    portion: list[_Prepared] = []
    chunks = size = 0
    for file in files:
        chunks += len(file.chunks or ())
        size += file.state.size
        if portion and (chunks > at_once or size > BYTES_AT_ONCE or len(portion) == FILES_AT_ONCE):
            yield portion
            portion, chunks, size = [], len(file.chunks or ()), file.state.size
        portion.append(file)
    if portion:
        yield portion


def _store(
    portion: Sequence[_Prepared],
    answering: dict[str, FileRow],
    index: Index,
    building: int,
    lock_timeout: float,
    at_once: int,
) -> None:
    rows = [(file.row, file.chunks) for file in portion if file.row is not None]
    if not rows:
        return
    row, chunks = rows[0]
    if chunks is not None and len(chunks) > at_once:
        with index.reading() as reader:
            if _overtaken(reader, [row], answering):
                return
        store_large(
            row, chunks, partial(words_of, row.path), index, building, lock_timeout, at_once
        )
        return
    words = [words_of(row.path, chunks or ()) for row, chunks in rows]
    with index.writing(timeout=lock_timeout) as writer:
        overtaken = _overtaken(writer, [row for row, _ in rows], answering)
        for (row, chunks), columns in zip(rows, words, strict=True):
            if chunks is None:
                writer.touch_file(row)
            elif row.path not in overtaken:
                writer.put_file(row, chunks, columns, building=building)


def _overtaken(reader: Reader, rows: Sequence[FileRow], answering: dict[str, FileRow]) -> set[str]:
    """The files of which another process has indexed a later state since the plan was made."""
    now = reader.files([row.path for row in rows])
    return {
        row.path
        for row in rows
        if row.path in now
        and now[row.path] != answering.get(row.path)
        and now[row.path].hash != row.hash
        and now[row.path].mtime_ns >= row.mtime_ns
    }


def store_large(
    row: FileRow,
    chunks: Sequence[Chunk],
    words: Callable[[Sequence[Chunk]], list[tuple[str, str, str]]],
    index: Index,
    building: int,
    lock_timeout: float,
    at_once: int = CHUNKS_AT_ONCE,
) -> None:
    """Store a file in several transactions.

    While another process stores a large file, this waits for it; a caller with a `lock_timeout` of
    0 gets `IndexBusy`."""
    with index.staging(timeout=STAGING_SECONDS if lock_timeout > 0 else 0.0):
        with index.reading() as reader:
            known = (reader.built() if building else reader.files([row.path])).get(row.path)
        if known is not None and known.hash == row.hash:
            return  # the other process stored these very bytes
        for tries_left in reversed(range(TRIES)):
            try:
                _stage(row, chunks, words, index, building, lock_timeout, at_once)
                return
            except IndexBusy:
                # The write lock was not free in time, or a change by another process removed the
                # staged rows.
                if lock_timeout <= 0 or not tries_left:
                    raise
                time.sleep(PAUSE)


def _stage(
    row: FileRow,
    chunks: Sequence[Chunk],
    words: Callable[[Sequence[Chunk]], list[tuple[str, str, str]]],
    index: Index,
    building: int,
    lock_timeout: float,
    at_once: int,
) -> None:
    with index.writing(timeout=lock_timeout) as writer:
        staged = writer.stage_file(row, building=building)
    for start in range(0, len(chunks), at_once):
        some = chunks[start : start + at_once]
        columns = words(some)
        with index.writing(timeout=lock_timeout) as writer:
            writer.add_chunks(staged, some, columns)
    with index.writing(timeout=lock_timeout) as writer:
        writer.finish_file(staged)


def words_of(path: str, chunks: Sequence[Chunk]) -> list[tuple[str, str, str]]:
    """What the full-text index gets of each chunk: what it states, its heading and date, and what
    it only asks.
    """
    columns = []
    for chunk in chunks:
        said = find_statements(without_note_header(without_comments(chunk.text)))
        context = keyword_context(path, without_note_title(chunk.heading))
        columns.append((index_words(said.text), context, index_words(said.asked)))
    return columns


def _row(document: Document, seen_ns: int, chunks: int) -> FileRow:
    state = document.state
    return FileRow(
        path=state.path,
        source=state.source,
        hash=document.hash,
        size=state.size,
        mtime_ns=state.mtime_ns,
        inode=state.inode,
        device=state.device,
        seen_ns=seen_ns,
        chunks=chunks,
    )
