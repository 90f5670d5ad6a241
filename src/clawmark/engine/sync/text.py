"""The text part of a sync: stores files as chunks and words, whole files at a time.

Reading, hashing and chunking happen without the write lock. One transaction stores some whole
files, so a crash leaves each file old or new, and readers never wait. A file with more than
`CHUNKS_AT_ONCE` chunks is stored in several transactions and becomes visible with the last. A file
that cannot be read becomes a `FileFailure`. Vectors are left to `sync.vectors`: new text can be
found by keywords as soon as its transaction commits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from clawmark.config.schema import Chunking
from clawmark.engine.sync.outcome import NOT_TEXT, TextReport, add_reports
from clawmark.model.documents import Chunk, Document
from clawmark.model.errors import NotText, WorkspaceError
from clawmark.model.sync_report import FileFailure, Progress
from clawmark.model.values import FileRow, FileState, SyncPlan, is_media
from clawmark.store.base import ChunkWords, IndexStore, Snapshot
from clawmark.text.chunking.chunks import chunk_text
from clawmark.text.chunking.days import with_days
from clawmark.text.dates import keyword_context
from clawmark.text.keywords.words import index_words
from clawmark.text.transcripts.dialogue import (
    find_statements,
    without_note_header,
    without_note_title,
)
from clawmark.text.untrusted.origin_labels import without_comments
from clawmark.workspace import Workspace

if TYPE_CHECKING:
    from clawmark.engine.sync.media import MediaSync

FILES_AT_ONCE, BYTES_AT_ONCE = 64, 2_000_000
CHUNKS_AT_ONCE, FEWEST_AT_ONCE = 300, 25
"""How much one transaction stores (about 30 ms). A commit costs as much as indexing eight chunks,
so small files share one. A sync with a time limit stores half as much, and a rebuild of a small
index less: its log takes space."""


class _Prepared(NamedTuple):
    """A file that was read, and what to store of it."""

    state: FileState
    row: FileRow | None
    """None if it could not be read."""
    chunks: list[Chunk] | None = None
    """None if the index already has this text."""
    is_new: bool = False
    failure: FileFailure | None = None
    text: str | None = None
    """The text of a memory file, if it differs from what the index has of the file."""


def apply_text(
    plan: SyncPlan,
    indexed: dict[str, FileRow],
    *,
    answering: dict[str, FileRow],
    reader: Workspace,
    store: IndexStore,
    chunker: Chunking,
    now_ns: Callable[[], int],
    progress: Callable[[Progress], None],
    out_of_time: Callable[[], bool],
    building: int = 0,
    lock_timeout: float = 10.0,
    at_once: int = CHUNKS_AT_ONCE,
    media: MediaSync | None = None,
    on_text: Callable[[Sequence[tuple[str, str]]], None] | None = None,
) -> TextReport:
    """Index the files of a plan, some at a time, until done or out of time.

    `on_text` is called with the path and the text of files whose text has changed, before it is
    stored. `building` is the number of a rebuild. If a file's row differs from the one in
    `answering`, another process has indexed it in the meantime; its version stays if it is a later
    state of the file."""

    def prepare(state: FileState) -> _Prepared:
        try:
            document = read_document(state, reader, media)
        except NotText as error:
            row = _row(Document(state, "", NOT_TEXT), now_ns(), 0)
            return _Prepared(state, row, [], failure=FileFailure(state.path, error.message))
        except WorkspaceError as error:
            return _Prepared(state, None, failure=FileFailure(state.path, error.message))
        known = indexed.get(state.path)
        if known is not None and known.hash == document.hash and not building:
            return _Prepared(state, _row(document, now_ns(), known.chunks))
        chunks = chunks_of(document, chunker)
        answers = answering.get(state.path)
        is_changed = not document.mime and (answers is None or answers.hash != document.hash)
        return _Prepared(
            state,
            _row(document, now_ns(), len(chunks)),
            chunks,
            is_new=known is None,
            text=document.text if is_changed and on_text is not None else None,
        )

    todo = [*plan.add, *plan.check, *plan.recheck]
    report = TextReport(due_files=len(todo))
    for portion in _portions(map(prepare, todo), at_once):
        changed = [(file.state.path, file.text) for file in portion if file.text is not None]
        if on_text is not None and changed:
            on_text(changed)
        _store(portion, answering, store, building, lock_timeout, at_once)
        report = add_reports(report, _count(portion))
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
    return report._replace(deleted=_delete(plan, store, lock_timeout))


def read_document(state: FileState, reader: Workspace, media: MediaSync | None) -> Document:
    """Read a memory file; with `media`, it may be an image or an audio file."""
    if media is not None and is_media(state.path):
        return media.read(state.path)
    return reader.read_document(state)


def chunks_of(document: Document, chunker: Chunking) -> list[Chunk]:
    """Chunk a memory file; an image or audio file is one chunk, whose heading is its type."""
    if not document.mime:
        return dated_chunks(document.state.path, document.text, chunker)
    chunk = Chunk(
        start_line=1, end_line=1, text=document.text, hash=document.hash, heading=document.mime
    )
    return with_days([chunk], document.state.path, "")


def dated_chunks(path: str, text: str, chunker: Chunking) -> list[Chunk]:
    """Chunk a memory file, with the days each chunk is about."""
    return with_days(
        chunk_text(text, chunker.mode, chunker.tokens, chunker.overlap, path), path, text
    )


def _count(portion: Sequence[_Prepared]) -> TextReport:
    """Count what storing some files did."""
    indexed = [file for file in portion if file.chunks is not None]
    return TextReport(
        added=sum(file.is_new for file in indexed),
        updated=sum(not file.is_new and file.failure is None for file in indexed),
        touched=sum(file.chunks is None and file.row is not None for file in portion),
        chunks=sum(len(file.chunks or ()) for file in indexed),
        failures=tuple(file.failure for file in portion if file.failure is not None),
        due_files=-len(portion),
        unread=sum(file.row is None for file in portion),
    )


def _delete(plan: SyncPlan, store: IndexStore, lock_timeout: float) -> int:
    """Delete files from the index, unless another process has indexed them again."""
    was = dict(zip(plan.delete, plan.was, strict=False))
    deleted = 0
    for start in range(0, len(plan.delete), FILES_AT_ONCE):
        with store.transaction(timeout=lock_timeout) as transaction:
            some = plan.delete[start : start + FILES_AT_ONCE]
            now = transaction.files(some)
            for path in some:
                if path not in was or path not in now or now[path][3:8] == was[path]:
                    transaction.delete_file(path)
                    deleted += 1
    return deleted


def _portions(files: Iterable[_Prepared], at_once: int) -> Iterator[list[_Prepared]]:
    """Group files that fit into one transaction; a file too large for one is alone."""
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
    store: IndexStore,
    building: int,
    lock_timeout: float,
    at_once: int,
) -> None:
    rows = [(file.row, file.chunks) for file in portion if file.row is not None]
    if not rows:
        return
    row, chunks = rows[0]
    if chunks is not None and len(chunks) > at_once:
        with store.snapshot() as snapshot:
            if _overtaken(snapshot, [row], answering):
                return
        store.put_large_file(
            row,
            chunks,
            partial(words_of, row.path),
            building=building,
            timeout=lock_timeout,
            at_once=at_once,
        )
        return
    words = [words_of(row.path, chunks or ()) for row, chunks in rows]
    with store.transaction(timeout=lock_timeout) as transaction:
        overtaken = _overtaken(transaction, [row for row, _ in rows], answering)
        for (row, chunks), columns in zip(rows, words, strict=True):
            if chunks is None:
                transaction.touch_file(row)
            elif row.path not in overtaken:
                transaction.put_file(row, chunks, columns, building=building)


def _overtaken(
    snapshot: Snapshot, rows: Sequence[FileRow], answering: dict[str, FileRow]
) -> set[str]:
    """Return the files of which another process has indexed a later state since the plan was
    made."""
    now = snapshot.files([row.path for row in rows])
    return {
        row.path
        for row in rows
        if row.path in now
        and now[row.path] != answering.get(row.path)
        and now[row.path].hash != row.hash
        and now[row.path].mtime_ns >= row.mtime_ns
    }


def words_of(path: str, chunks: Sequence[Chunk]) -> list[ChunkWords]:
    """Return the words of each chunk: what it states, its heading and date, and what it only
    asks."""
    columns: list[ChunkWords] = []
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
