"""Decide which entries, files and sessions a selection means."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from clawmark.agent.forget.parts import ForgetParts, is_own_file, transcript_files
from clawmark.agent.forget.scan import Piece, memory_paths, memory_pieces, transcript_pieces
from clawmark.agent.forget.values import Selection
from clawmark.agent.notes.session_note import SESSION_ID, find_notes
from clawmark.agent.session.session import SessionStore
from clawmark.history.journal import decide_origin, entry_hash
from clawmark.model.errors import WorkspaceError
from clawmark.model.provenance import JournalRecord
from clawmark.model.values import parse_citation
from clawmark.text.filters import make_filters
from clawmark.text.forgetting import content_of, is_distinct, is_heading, plain_of, units_of
from clawmark.text.transcripts.records import read_message
from clawmark.text.untrusted.origin_labels import IMPORTS
from clawmark.workspace.transcripts.files import OWN

FEW_CONTENTS = 200
"""Up to this many entries are also found inside longer ones; more are compared as a whole."""
SHORTEST = 2
"""Letters of a text; one letter is in almost every entry."""
LATE = timedelta(hours=1)
"""How long after its last message a session may still be written from."""


class NothingToForget(WorkspaceError):
    """Raised when a selection means nothing."""

    exit_code = 2


class Wanted(NamedTuple):
    """What a selection means, before every place is searched for it."""

    needles: tuple[str, ...] = ()
    """Every entry that contains one of these is forgotten."""
    contents: frozenset[str] = frozenset()
    """Entries that are forgotten wherever they are."""
    whole_only: bool = False
    """Whether they are not looked for inside longer entries."""
    derived: frozenset[str] = frozenset()
    """Entries that proposals have made from them."""
    local: frozenset[tuple[str, str]] = frozenset()
    """(path, content) of entries that are forgotten in one file only."""
    written: frozenset[str] = frozenset()
    """Entries in memory files by their hash in the journal."""
    files: tuple[str, ...] = ()
    transcripts: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    def matches(self, piece: Piece) -> bool:
        """Decide whether an entry is forgotten where it is."""
        content = piece.unit.content
        if self.covers(content):
            return True
        if is_heading(piece.unit):
            return False
        in_memory = piece.kind in ("memory", "history", "version", "proposal")
        is_written = (
            in_memory and bool(self.written) and entry_hash(piece.unit.text) in self.written
        )
        return is_written or (piece.path, content) in self.local

    def covers(self, content: str) -> bool:
        """Decide by content alone."""
        if self.needles and self._has_needle(content):
            return True
        if content in self.contents or content in self.derived:
            return True
        is_short_list = 0 < len(self.contents) <= FEW_CONTENTS and not self.whole_only
        return is_short_list and any(one in content for one in self.contents)

    def _has_needle(self, content: str) -> bool:
        """Look for the needles as they are, and as a reader sees them."""
        plain = plain_of(content)
        return any(needle in content or plain_of(needle) in plain for needle in self.needles)


def select(parts: ForgetParts, selection: Selection) -> Wanted:
    """Return what a selection means; WorkspaceError if it means nothing."""
    given = [name for name, value in selection._asdict().items() if value]
    if len(given) != 1:
        raise NothingToForget(
            "Say in one way what to forget: a text, a path, lines, a session, a source or a day.",
            hint='For example: clawmark forget "the code of the garage"',
        )
    match given[0]:
        case "text":
            return _by_text(selection.text)
        case "path":
            return _by_path(parts, selection.path)
        case "lines":
            return _by_lines(parts, selection.lines)
        case "session":
            return _by_session(parts, selection.session)
        case "source":
            return _by_source(parts, selection.source)
    return _by_day(parts, selection.since)


def _by_text(text: str) -> Wanted:
    needles = tuple(unit.content for unit in units_of(text)) or (content_of(text),)
    if min(len(plain_of(needle)) for needle in needles) < SHORTEST:
        raise NothingToForget(
            f"A text to forget has at least {SHORTEST} letters.", hint="Give some words of it."
        )
    return Wanted(needles=needles)


def _by_path(parts: ForgetParts, given: str) -> Wanted:
    path = parse_citation(given).path.removeprefix("./").rstrip("/")
    known = {*memory_paths(parts), *(path for _, path, _ in parts.history.contents())}
    files = sorted(
        one for one in known if is_own_file(one) and (one == path or one.startswith(f"{path}/"))
    )
    if not files:
        raise NothingToForget(
            f"{path} is not a memory file of this workspace, and never was one in the history.",
            hint="`clawmark ls` lists the memory files.",
        )
    return _whole_files(parts, files)


def _whole_files(parts: ForgetParts, files: Iterable[str]) -> Wanted:
    wanted = frozenset(files)
    current = (piece for piece in memory_pieces(parts, []) if piece.path in wanted)
    return Wanted(contents=_distinct(current), files=tuple(sorted(wanted)))


def _by_lines(parts: ForgetParts, given: str) -> Wanted:
    named = parse_citation(given)
    if named.lines is None and "#" not in given:
        raise NothingToForget(
            f"{given} does not name lines.", hint="Write them as memory/2026-11-15.md#L3-L9."
        )
    backwards = re.search(r"#L([0-9]{1,9})-L?([0-9]{1,9})\Z", given)
    if backwards and int(backwards[2]) < int(backwards[1]):
        raise NothingToForget(
            f"The lines of {given} end before they begin.", hint="Write them as #L3-L9."
        )
    path, first = named.path.removeprefix("./"), named.start
    last = first + (named.lines or 1) - 1
    found = [
        piece
        for piece in memory_pieces(parts, [])
        if piece.path == path and piece.unit.first_line <= last and first <= piece.unit.last_line
    ]
    if not found:
        raise NothingToForget(
            f"There is no entry in {given}.", hint="`clawmark recent` and searches cite lines."
        )
    local = frozenset((piece.path, piece.unit.content) for piece in found)
    return Wanted(contents=_distinct(found), local=local)


def _by_session(parts: ForgetParts, given: str) -> Wanted:
    session = os.path.basename(given).partition(".jsonl")[0].removeprefix(f"{OWN}/")
    if not SESSION_ID.fullmatch(session):
        raise NothingToForget(
            f"{given!r} is not the id of a session.", hint="`clawmark sessions` lists them."
        )
    transcripts = [
        (path, cited)
        for path, cited in transcript_files(parts).items()
        if os.path.basename(path).startswith((f"{session}.", f"{session}-topic-"))
    ]
    notes = [path for path, _ in find_notes(parts.workspace, session, "")]
    if not transcripts and not notes:
        raise NothingToForget(
            f"There is no transcript or note of the session {session}.",
            hint="`clawmark sessions` lists them.",
        )
    said = [piece for path, cited in transcripts for piece in transcript_pieces(path, cited)]
    noted = [piece for piece in memory_pieces(parts, []) if piece.path in notes]
    return Wanted(
        contents=_distinct([*said, *noted]),
        whole_only=True,  # the user may have written the same words elsewhere
        written=_written_from(parts, session, [path for path, _ in transcripts]),
        files=tuple(sorted(notes)),
        transcripts=tuple(path for path, _ in transcripts),
        sessions=(session,),
    )


def _written_from(parts: ForgetParts, session: str, transcripts: list[str]) -> frozenset[str]:
    """Return the entries that the journal says were written from a session."""
    keys, is_current = {session}, False
    for folder in parts.session_folders:
        store = SessionStore(folder)
        for key in store.keys():  # noqa: SIM118 - not a mapping
            if store.get(key).session_id == session:
                keys.add(key)
                is_current = True
    first, last = _times(transcripts)
    if is_current or last is None:
        last = parts.now()

    def is_its_own(record: JournalRecord) -> bool:
        if session in record.origin.source or record.origin.session == session:
            return True
        if record.origin.session not in keys or first is None or last is None:
            return False
        return first <= datetime.fromisoformat(record.time) <= last + LATE

    records = [record for record in parts.journal.records() if is_its_own(record)]
    return frozenset(one for record in records for one in record.entries)


def _times(transcripts: list[str]) -> tuple[datetime | None, datetime | None]:
    """Return the times of the first and the last message of some transcripts."""
    times = list[datetime]()
    for path in transcripts:
        with open(path, encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                message = read_message(line, number)
                if message is not None and message.time:
                    times.append(datetime.fromisoformat(message.time))
    return (min(times), max(times)) if times else (None, None)


def _by_source(parts: ForgetParts, given: str) -> Wanted:
    name = given.removesuffix("/import").removeprefix(IMPORTS).strip("/")
    below = f"{IMPORTS}{name}/"
    files = [path for path in memory_paths(parts) if path.startswith(below)]
    files += [path for _, path, _ in parts.history.contents() if path.startswith(below)]
    sources = tuple(one.name for one in parts.sources.read() if one.name == name)
    if not files and not sources:
        raise NothingToForget(
            f"There is neither an added folder nor an import called {name}.",
            hint="`clawmark sources` lists the added folders; imports are in memory/imports/.",
        )
    return _whole_files(parts, files)._replace(sources=sources)


def _by_day(parts: ForgetParts, given: str) -> Wanted:
    day = make_filters(since=given, until=None, path=None, source=None, today=parts.today).since
    by_entry = dict[str, list[JournalRecord]]()
    for record in parts.journal.records():
        for one in record.entries:
            by_entry.setdefault(one, []).append(record)
    written = frozenset(
        one
        for one, records in by_entry.items()
        if (origin := decide_origin(records)) is not None
        and origin.origin.actor in ("agent", "plugin")
        and origin.origin.trust != "owner"
        and all(record.time[:10] >= day for record in records)
    )
    if not written:
        raise NothingToForget(
            f"The journal has nothing that an agent wrote since {day}.",
            hint="`clawmark log` lists what was written.",
        )
    return Wanted(written=written)


def _distinct(found: Iterable[Piece]) -> frozenset[str]:
    return frozenset(
        piece.unit.content
        for piece in found
        if is_distinct(piece.unit.content) and not is_heading(piece.unit)
    )
