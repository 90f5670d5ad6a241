"""Report a session: its messages, what it took from the memory, and what was written from it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from clawmark.agent.session.memory_use import MemoryUse, find_memory_uses
from clawmark.agent.session.session import SessionEntry, SessionStore
from clawmark.composition.history.journal_reports import with_texts
from clawmark.model.errors import ClawmarkError
from clawmark.model.provenance import JournalRecord, LogEntry
from clawmark.text.transcripts.records import TranscriptMessage
from clawmark.text.transcripts.session_keys import SessionKind, kind_of
from clawmark.workspace.transcripts.json_lines import read_lines

if TYPE_CHECKING:
    from clawmark.config.paths import Places
    from clawmark.memory import Memory

AFTER = timedelta(minutes=10)
"""How long after the last message a tool of the session may still have written."""


class KnownSession(NamedTuple):
    """A session that `sessions.json` lists."""

    key: str
    session_id: str
    file: str
    """The file name of its transcript."""
    kind: SessionKind
    chat_type: str
    """What the host declared about the chat; it can only make a session less private."""
    note: str
    """Path of its session note; empty if there is none."""


class SessionReport(NamedTuple):
    """One session: its messages, what it took from the memory, and what was written from it."""

    path: str
    messages: tuple[TranscriptMessage, ...]
    key: str
    """Empty if neither `sessions.json` nor the journal knows it."""
    kind: SessionKind | None
    """None if the key is not known."""
    note: str
    uses: tuple[MemoryUse, ...]
    """What was recalled into it, and what its model searched for and read."""
    writes: tuple[LogEntry, ...]
    """What was flushed, noted and remembered from it, the newest first."""
    journal_problem: str = ""
    """Why it is not known what was written."""


def known_sessions(places: Places) -> tuple[KnownSession, ...]:
    """Return the sessions of an agent that `sessions.json` lists, the latest first.

    A file that cannot be read lists none."""
    entries = list[SessionEntry]()
    for folder in dict.fromkeys((places.sessions_dir, places.conversations_dir)):
        store = SessionStore(folder)
        try:
            entries += [store.get(key) for key in store.keys()]  # noqa: SIM118 - not a mapping
        except ClawmarkError:
            continue
    entries.sort(key=lambda entry: entry.updated_at, reverse=True)
    return tuple(
        KnownSession(
            key=entry.key,
            session_id=entry.session_id,
            file=os.path.basename(entry.session_file) or f"{entry.session_id}.jsonl",
            kind=kind_of(entry.key, entry.chat_type),
            chat_type=entry.chat_type,
            note=entry.session_note,
        )
        for entry in entries
    )


def report_session(memory: Memory, name: str) -> SessionReport:
    """Return the report of a transcript, by its path, its file name or the beginning of that."""
    path, messages = memory.transcript(name)
    file = os.path.basename(path)
    known = next((one for one in known_sessions(memory.places) if one.file == file), None)
    key, problem = known.key if known else "", ""
    found = list[JournalRecord]()
    try:
        records = list(_records_since(memory, messages))
        key = key or next((one.origin.session for one in records if _made_from(one, file)), "")
        found = [one for one in records if _is_written_by(one, file, key, messages)]
    except ClawmarkError as error:
        problem = error.message
    return SessionReport(
        path=path,
        messages=messages,
        key=key,
        kind=(known.kind if known else kind_of(key)) if key else None,
        note=known.note if known else "",
        uses=_uses(memory, path),
        writes=with_texts(memory.workspace, found),
        journal_problem=problem,
    )


def _uses(memory: Memory, path: str) -> tuple[MemoryUse, ...]:
    transcripts = memory.transcript_files
    with transcripts.open(path) as opened:
        lines = read_lines(opened.fd, 0, 1, opened.state.size)
        found = find_memory_uses((line.number, line.data) for line in lines)
        return tuple(one._replace(query=transcripts.clean(one.query)) for one in found)


def _records_since(
    memory: Memory, messages: tuple[TranscriptMessage, ...]
) -> Iterator[JournalRecord]:
    """Yield the records of the journal that may be about a session, the newest first."""
    begun = next((_moment(one.time) for one in messages if one.time), None)
    for record in memory.journal.newest():
        written = _moment(record.time)
        if begun is not None and written is not None and written < begun:
            return
        if not record.dropped:
            yield record


def _is_written_by(
    record: JournalRecord, file: str, key: str, messages: tuple[TranscriptMessage, ...]
) -> bool:
    """Whether a write was made from a session: from its transcript, or by its tools while it ran.

    Sessions that follow one another have the same key, so the time decides between them."""
    if _made_from(record, file):
        return True
    if not key or record.origin.session != key or record.origin.kind not in ("tool", "capture"):
        return False
    last = next((_moment(one.time) for one in reversed(messages) if one.time), None)
    written = _moment(record.time)
    return last is not None and written is not None and written <= last + AFTER


def _made_from(record: JournalRecord, file: str) -> bool:
    """Whether a flush or a note was made from a transcript."""
    return record.origin.source.partition(" bytes ")[0] == file


def _moment(time: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(time)
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
