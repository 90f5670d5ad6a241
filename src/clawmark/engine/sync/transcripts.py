"""Indexes transcripts in small transactions.

A transcript may be large and is usually still being written. It is read line by line from where the
last sync stopped. Each transaction leaves the file correctly indexed up to some line, so a kill or
a time limit loses nothing. The file stays due until its end is reached. Secrets are masked before
anything is stored. `text.transcripts` parses lines; `transcript_progress` decides where to
continue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from clawmark.config.schema import Chunking
from clawmark.engine.sync.outcome import TextReport
from clawmark.engine.sync.transcript_progress import (
    UNFINISHED,
    Reached,
    checksum_of,
    continues,
    encode,
    mark_of,
)
from clawmark.model.documents import Chunk
from clawmark.model.errors import WorkspaceError
from clawmark.model.sync_report import FileFailure, Progress
from clawmark.model.values import FileRow, FileState, Skipped
from clawmark.store.base import ChunkWords, IndexStore
from clawmark.text.dates import date_words
from clawmark.text.keywords.words import index_words
from clawmark.text.transcripts.chunks import TranscriptChunker
from clawmark.text.transcripts.dialogue import find_statements
from clawmark.text.transcripts.records import format_of, parse_line
from clawmark.workspace.transcripts.files import OpenTranscript, TranscriptFiles
from clawmark.workspace.transcripts.json_lines import BLOCK, LONGEST_LINE, Line, read_at, read_lines
from clawmark.workspace.transcripts.messages import message_on

SLICE_CHUNKS = 128
"""How many chunks one transaction stores (about 30 ms)."""
TRIES = 100
"""How often to start again after another process has indexed the same transcript."""
SLICE_BYTES = 4 << 20
"""How much is read between two transactions if it contains few messages."""


class Work(NamedTuple):
    """What indexing transcripts needs."""

    sessions: TranscriptFiles
    store: IndexStore
    chunker: Chunking
    now_ns: Callable[[], int]
    out_of_time: Callable[[], bool]
    building: int = 0
    lock_timeout: float = 10.0
    slice_chunks: int = SLICE_CHUNKS
    slice_bytes: int = SLICE_BYTES


class Done(NamedTuple):
    """The outcome for one transcript."""

    what: str
    """added, updated, touched, due, or overtaken by another process"""
    chunks: int = 0
    too_long: tuple[int, ...] = ()
    """The numbers of lines that were skipped."""


def apply_transcripts(
    states: Iterable[FileState],
    indexed: dict[str, FileRow],
    work: Work,
    progress: Callable[[Progress], None],
) -> TextReport:
    """Index transcripts until done or out of time, the latest first."""
    todo = sorted(states, key=lambda state: -state.mtime_ns)
    found = list[Done]()
    failures, skipped = list[FileFailure](), list[Skipped]()
    for number, state in enumerate(todo, 1):
        if number > 1 and work.out_of_time():
            break
        try:
            with work.sessions.open(state.path) as opened:
                found.append(_index_one(opened, indexed.get(state.path), work))
        except FileNotFoundError:
            failures.append(FileFailure(state.path, f"{state.path} is gone."))
        except WorkspaceError as error:
            failures.append(FileFailure(state.path, error.message))
        else:
            skipped += _passed_over(state.path, found[-1].too_long)
        progress(
            Progress(
                stage="text", done=number, total=len(todo), label=state.path, source="sessions"
            )
        )
    count = {
        what: sum(done.what == what for done in found)
        for what in ("added", "updated", "touched", "due")
    }
    left = len(todo) - len(found) - len(failures) + count["due"]
    chunks = sum(done.chunks for done in found)
    return TextReport(
        added=count["added"],
        updated=count["updated"],
        touched=count["touched"],
        chunks=chunks,
        failures=tuple(failures),
        due_files=left,
        skipped=tuple(skipped),
        unread=len(failures),
    )


def _index_one(opened: OpenTranscript, known: FileRow | None, work: Work) -> Done:
    """Index one transcript; if another process indexes it too, continue from where that one is."""
    done = _Transcript(opened, known, work).run()
    tries = 0
    while done.what == "overtaken" and tries < TRIES and not work.out_of_time():
        path = opened.state.path
        with work.store.snapshot() as snapshot:
            now = snapshot.files([path], which="rebuilt" if work.building else "visible")
        again = _Transcript(opened, now.get(path), work).run()
        done = Done(again.what, done.chunks + again.chunks, done.too_long + again.too_long)
        tries += 1
    return done._replace(what="due") if done.what == "overtaken" else done


def derive(opened: OpenTranscript, sessions: TranscriptFiles, chunker: Chunking) -> Iterable[Chunk]:
    """Yield every chunk of a transcript, as its rows must be."""
    packer = TranscriptChunker(chunker.tokens, chunker.overlap)
    for line in read_lines(opened.fd, 0, 1, opened.state.size):
        said = message_on(line, sessions.clean) if line.is_whole or _may_be_finished(line) else None
        if said is not None:
            packer.add(said)
            yield from packer.chunks
            packer.chunks.clear()
    packer.close()
    yield from packer.chunks


class _Overtaken(Exception):
    """Another process has indexed more of the same transcript."""


class _Transcript:
    """One transcript while it is being indexed."""

    def __init__(self, opened: OpenTranscript, known: FileRow | None, work: Work) -> None:
        self._fd, self._state = opened
        self._work = work
        self._packer = TranscriptChunker(work.chunker.tokens, work.chunker.overlap)
        self._places: dict[int, tuple[int, int, int]] = {}
        self._stored = 0
        self._too_long = list[int]()
        self._known = known
        begun = continues(self._fd, known, self._state) if known is not None else None
        self._at = begun if begun is not None and self._take_up(begun) else Reached()
        """What has been read so far."""
        self._kept = self._at
        """What the index holds of it."""
        self._was = known.progress if known is not None and self._at is begun else None
        """The same as stored in the row; None if the row belongs to another file or does not exist.
        """

    def run(self) -> Done:
        """Index what is new; stop between two transactions when time is up."""
        known, state = self._known, self._state
        if (
            known is not None
            and self._was is not None
            and self._at.read == state.size == known.size
        ):
            return self._touch(known)
        try:
            is_end = self._read_on()
        except _Overtaken:
            return self._done("overtaken")
        return self._done("due" if not is_end else "added" if known is None else "updated")

    def _read_on(self) -> bool:
        """Read and store lines; return whether the end was reached before time was up."""
        loose: Line | None = None
        for line in read_lines(self._fd, self._at.read, self._at.lines + 1, self._state.size):
            if not line.is_whole:
                loose = line
                break
            self._take(line)
            if self._is_slice():
                self._store_some()
                if self._work.out_of_time():
                    return False
        self._store_end(loose)
        return True

    def _done(self, what: str) -> Done:
        return Done(what, self._stored, tuple(self._too_long))

    def _take_up(self, begun: Reached) -> bool:
        """Load the messages of the incomplete chunk; return False if they are no longer in the
        file."""
        for number, start, end in begun.open:
            line = Line(
                number=number,
                start=start,
                end=end,
                data=read_at(self._fd, start, end - start),
                is_whole=True,
            )
            said = message_on(line, self._work.sessions.clean)
            if said is None or self._packer.chunks:
                self._packer = TranscriptChunker(
                    self._work.chunker.tokens, self._work.chunker.overlap
                )
                return False
            self._packer.add(said)
            self._places[number] = line[:3]
        return True

    def _touch(self, known: FileRow) -> Done:
        """Store the new stat of a file whose content has not changed."""
        row = known._replace(
            mtime_ns=self._state.mtime_ns,
            inode=self._state.inode,
            device=self._state.device,
            seen_ns=self._work.now_ns(),
        )
        with self._work.store.transaction(timeout=self._work.lock_timeout) as transaction:
            transaction.touch_file(row)
        return Done("touched")

    def _take(self, line: Line) -> None:
        """Read one complete line."""
        before, pieces = self._at, self._at.pieces
        if line.data is None:
            self._too_long.append(line.number)
        said = message_on(line, self._work.sessions.clean)
        kind = before.kind or _kind(line)
        self._at = before._replace(read=line.end, lines=line.number, pieces=0, kind=kind)
        if said is None:
            return
        self._places[line.number] = line[:3]
        self._packer.add(said)
        first = before.first or said.time
        self._at = self._at._replace(
            said=before.said + 1, first=first, last=said.time or before.last
        )
        del self._packer.chunks[:pieces]
        self._store_pieces(before._replace(open=(), kind=kind), line.number, pieces)

    def _store_pieces(self, before: Reached, line: int, pieces: int) -> None:
        """Store most of the chunks of one very long message, more than one transaction should
        take."""
        chunks = self._packer.chunks
        most = self._work.slice_chunks
        while len(chunks) > most:
            some = chunks[:most]
            pieces += sum(chunk.start_line == line for chunk in some)
            self._store(some, before._replace(pieces=pieces), is_end=False)
            del chunks[:most]

    def _is_slice(self) -> bool:
        work, since = self._work, self._at.read - self._kept.read
        return len(self._packer.chunks) >= work.slice_chunks or since >= work.slice_bytes

    def _store_some(self) -> None:
        """Store the complete chunks."""
        chunks, self._packer.chunks = self._packer.chunks, []
        self._store(chunks, self._at._replace(open=self._open()), is_end=False)

    def _store_end(self, loose: Line | None) -> None:
        """Store the rest: the incomplete chunk, and a message without a line end if it parses.

        The recorded position is before both, so that they can be replaced."""
        reached = self._at._replace(open=self._open(), loose=0)
        said = (
            message_on(loose, self._work.sessions.clean)
            if loose is not None and _may_be_finished(loose)
            else None
        )
        if said is not None:
            self._packer.add(said)
            reached = reached._replace(loose=1)
        self._packer.close()
        self._store(self._packer.chunks, reached, is_end=True)

    def _open(self) -> tuple[tuple[int, int, int], ...]:
        self._places = {turn.line: self._places[turn.line] for turn in self._packer.open}
        return tuple(self._places.values())

    def _store(self, chunks: Sequence[Chunk], reached: Reached, *, is_end: bool) -> None:
        """Store chunks in one transaction; raise `_Overtaken` if the row is not what this run
        left."""
        work, state = self._work, self._state
        checksum = checksum_of(self._fd, self._kept.read, reached.read, self._kept.checksum)
        reached = reached._replace(checksum=checksum)
        mark = mark_of(self._fd, reached, is_finished=is_end)
        size = state.size if is_end else UNFINISHED
        row = FileRow(
            path=state.path,
            source="sessions",
            hash=mark,
            size=size,
            mtime_ns=state.mtime_ns,
            inode=state.inode,
            device=state.device,
            seen_ns=work.now_ns(),
            chunks=len(chunks),
            progress=encode(reached),
        )
        words = words_of(chunks)
        with work.store.transaction(timeout=work.lock_timeout) as transaction:
            if self._was is None:
                transaction.put_file(row, chunks, words, building=work.building)
                is_ours = True
            else:
                first = self._kept.rest_from
                is_ours = transaction.extend_file(
                    row, first, chunks, words, was=self._was, building=work.building
                )
        if not is_ours:
            raise _Overtaken
        self._kept, self._was = reached, row.progress
        self._stored += len(chunks)


def words_of(chunks: Sequence[Chunk]) -> list[ChunkWords]:
    """Return the words of each chunk: what it states, its days, and what it only asks."""
    columns: list[ChunkWords] = []
    for chunk in chunks:
        said = find_statements(chunk.text)
        columns.append((index_words(said.text), _day_words(chunk.heading), index_words(said.asked)))
    return columns


def _may_be_finished(line: Line) -> bool:
    """Return whether to parse a line without a line end; a long one can wait."""
    return line.data is not None and len(line.data) <= BLOCK


def _kind(line: Line) -> str:
    return (
        format_of(parse_line(line.data[:BLOCK].decode("utf-8", "replace")))
        if line.data is not None
        else ""
    )


def _day_words(heading: str) -> str:
    return index_words(" ".join(date_words(day) for day in heading.split()))


def _passed_over(path: str, lines: tuple[int, ...]) -> list[Skipped]:
    if not lines:
        return []
    some = ", ".join(map(str, lines[:5])) + (" …" if len(lines) > 5 else "")
    return [
        Skipped(
            path,
            f"{len(lines)} lines of more than {LONGEST_LINE >> 20} MB were passed over: {some}",
        )
    ]
