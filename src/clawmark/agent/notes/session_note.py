"""The session note: when a session ends, write its last messages to a memory file.

The file is `memory/YYYY-MM-DD-<slug>.md`, dated by the last message in the user's time zone. No
file is overwritten, and a session gets one note: its path is recorded in sessions.json, and after a
crash between the two writes the session's id is found in the header of the note. Messages are
quoted without commands, tool calls, system text, recalled memory and secrets. `note_content`
decides what is worth quoting."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, TypeAlias

from clawmark.agent.models.completer import Completer
from clawmark.agent.notes.note_content import note_content
from clawmark.agent.notes.outside_text import hear
from clawmark.agent.notes.recalled_context import read_recalled_context
from clawmark.agent.notes.slug import slug_for
from clawmark.agent.session.session import Fields, SessionEntry, SessionStore
from clawmark.agent.session.transcript_reader import recent_messages, transcript_size
from clawmark.agent.tools.base import one_line
from clawmark.agent.tools.policy import access_of
from clawmark.model.errors import ClawmarkError, KeptForReview, WorkspaceError, WriteConflict
from clawmark.model.provenance import Origin
from clawmark.text.dates import date_of
from clawmark.text.secrets.redact import Redactor
from clawmark.text.transcripts.records import ROLE_NAMES, TranscriptMessage
from clawmark.text.transcripts.session_keys import kind_of
from clawmark.text.untrusted.invisible_characters import escape
from clawmark.text.write_check import check_write
from clawmark.workspace import Workspace
from clawmark.workspace.daily import daily_path

Reason: TypeAlias = Literal["new", "reset", "daily", "idle", "exit", "flush"]
NoNoteReason: TypeAlias = Literal[
    "disabled",
    "automatic",
    "sandboxed",
    "no-session",
    "empty",
    "nothing-stated",
    "already-noted",
    "for-review",
]

NO_NOTE_REASONS: dict[NoNoteReason, str] = {
    "disabled": "session notes are switched off",
    "automatic": "no person takes part in such a session",
    "sandboxed": "the session's sandbox may not write to the workspace",
    "no-session": "there is no such session",
    "empty": "the session has no messages",
    "nothing-stated": "nothing new was stated in it: only questions, "
    "requests, or what the memory itself gave",
    "already-noted": "it has its note already",
    "for-review": "its note waits until the user accepts it with `clawmark review`",
}

LONGEST_MESSAGE = 2_000
"""Characters. A longer message is truncated; the transcript has all of it."""
AUTOMATIC = ("cron", "heartbeat", "subagent")
"""Kinds of sessions without a person, whose many runs would bury the other notes."""
MOST_TRIES = 1_000
"""Notes with the same name on one day."""
SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_HEADER_LINES = 6
_ID = "- **Session ID**: "


class NoteSettings(NamedTuple):
    """`hooks.internal.entries["session-memory"]`."""

    enabled: bool = True
    messages: int = 15
    llm_slug: bool = True


class NoteParts(NamedTuple):
    """What is needed to write a note."""

    completer: Completer | None
    store: SessionStore
    workspace: Workspace
    redactor: Redactor
    settings: NoteSettings
    now: Callable[[], datetime]


class Noted(NamedTuple):
    """A note was written."""

    path: str


class NoNote(NamedTuple):
    """No note was written."""

    because: NoNoteReason

    @property
    def message(self) -> str:
        """The reason in words."""
        return NO_NOTE_REASONS[self.because]


class NoteFailed(NamedTuple):
    """A note could not be written; it can be tried again."""

    message: str
    hint: str


class Draft(NamedTuple):
    """A note that is not written yet."""

    day: str
    slug: str
    text: str
    origin: Origin
    outside: str = ""
    """The part of the text that came from outside."""


NoteOutcome: TypeAlias = Noted | NoNote | NoteFailed


def note_session(
    parts: NoteParts, key: str, *, reason: Reason, source: str = "", needs_answer: bool = False
) -> NoteOutcome:
    """Write the note of a session, once; with `needs_answer`, only if the assistant answered."""
    entry = parts.store.get(key)
    if not parts.settings.enabled:
        return NoNote("disabled")
    if reason != "flush" and kind_of(key, entry.chat_type) in AUTOMATIC:
        return NoNote("automatic")
    if not entry.session_id:
        return NoNote("no-session")
    if entry.session_note:
        return NoNote("already-noted")
    transcript = find_transcript(entry, parts.store.folder)
    draft = draft_note(
        parts,
        entry,
        transcript,
        _last_messages(parts, transcript),
        reason=reason,
        source=source,
        needs_answer=needs_answer,
    )
    if isinstance(draft, NoNote):
        return draft
    try:
        return _write_once(parts, entry, draft)
    except ClawmarkError as error:
        return NoteFailed(error.message, error.hint)


def note_transcript(
    parts: NoteParts, path: str, *, reason: Reason = "flush", source: str = ""
) -> NoteOutcome:
    """Write the note of a transcript without a session; its file name is used as session id."""
    session_id = os.path.basename(path).partition(".jsonl")[0]
    entry, messages = SessionEntry("unknown", session_id), _last_messages(parts, path)
    draft = draft_note(parts, entry, path, messages, reason=reason, source=source)
    if isinstance(draft, NoNote):
        return draft
    if _find_note(parts.workspace, session_id, draft.day):
        return NoNote("already-noted")
    try:
        return Noted(create_note(parts.workspace, draft))
    except KeptForReview:
        return NoNote("for-review")


def _last_messages(parts: NoteParts, transcript: str) -> list[TranscriptMessage]:
    return recent_messages(
        transcript, parts.redactor, most_messages=parts.settings.messages, most_chars=200_000
    )


def draft_note(
    parts: NoteParts,
    entry: SessionEntry,
    transcript: str,
    messages: Sequence[TranscriptMessage],
    *,
    reason: Reason,
    source: str,
    since: int = 0,
    header: str = "",
    needs_answer: bool = False,
) -> Draft | NoNote:
    """Draft the note of some messages of a transcript, those from byte `since` on.

    `header` is an additional header line. A model may be called, so no lock must be held.
    """
    messages = [one for one in messages if not parts.workspace.is_forgotten(one.text)]
    if not any(message.role == "user" for message in messages):
        return NoNote("empty")
    moment = _last_moment(messages, parts.now())
    days = tuple((moment - timedelta(days=back)).date().isoformat() for back in range(2))
    context = read_recalled_context(transcript, since, parts.workspace, days)
    quoted = note_content(
        messages, context.recalled, used_tools=context.used_tools, needs_answer=needs_answer
    )
    if not quoted:
        return NoNote("nothing-stated")
    completer = parts.completer if parts.settings.llm_slug else None
    heard = hear(messages, transcript, since, parts.workspace)
    # The name of a note is shown where its text is left out, so it has no words from outside.
    own = [one for one in quoted if one.role == "user" or not heard.is_outside(one.text)]
    slug = slug_for(own, completer) or f"{moment:%H%M}"
    text = render_note(quoted, entry, moment, reason=reason, source=source, header=header)
    answers = (message.text for message in quoted if message.role == "assistant")
    end = transcript_size(transcript)
    return Draft(
        day=f"{moment:%Y-%m-%d}",
        slug=slug,
        text=text,
        origin=Origin(
            actor="agent",
            kind="note",
            trust=access_of(entry.key, chat_type=entry.chat_type).trust,
            session=entry.key,
            source=f"{os.path.basename(transcript)} bytes {min(since, end)}-{end}",
        ),
        outside="\n\n".join(_quote(one) for one in answers if heard.is_outside(one)),
    )


def render_note(
    messages: Sequence[TranscriptMessage],
    entry: SessionEntry,
    moment: datetime,
    *,
    reason: str,
    source: str,
    header: str = "",
) -> str:
    """Return the text of a note; `header` is an additional header line."""
    zone = str(moment.tzinfo) if moment.tzinfo is not None else "local time"
    head = [
        f"# Session: {moment:%Y-%m-%d %H:%M:%S} ({zone})",
        "",
        f"- **Session Key**: {one_line(entry.key, 200)}",
        f"{_ID}{one_line(entry.session_id, 200)}",
        f"- **Source**: {one_line(source or entry.chat_type or 'unknown', 100)}, {reason}",
        *filter(None, [header]),
        "",
        "## Last messages",
    ]
    quotes = [
        f"{ROLE_NAMES[message.role]}{message.local_time(moment, ' (%H:%M)')}:\n\n"
        f"{_quote(message.text)}"
        for message in messages
    ]
    return "\n\n".join(["\n".join(head), *quotes]) + "\n"


def find_transcript(entry: SessionEntry, folder: str) -> str:
    """Return the transcript of a session, even if it was archived or moved; empty if not found."""
    if entry.session_file and os.path.isfile(entry.session_file):
        return entry.session_file
    if not SESSION_ID.fullmatch(entry.session_id):
        return ""
    name = f"{entry.session_id}.jsonl"
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return ""
    prefix = f"{entry.session_id}-topic-"
    topics = [one for one in names if one.startswith(prefix) and one.endswith(".jsonl")]
    archives = [one for one in names if one.startswith(f"{name}.reset.")]
    found = ([name] if name in names else []) or topics[-1:] or archives[-1:]
    return os.path.join(folder, found[0]) if found else ""


def _write_once(parts: NoteParts, asked: SessionEntry, draft: Draft) -> NoteOutcome:
    """Write the note with the session locked, unless another process has written it."""
    outcome: list[NoteOutcome] = []

    def write(entry: SessionEntry) -> Fields | None:
        if entry.session_id != asked.session_id or entry.session_note:
            outcome.append(NoNote("already-noted"))
            return None
        path = _find_note(parts.workspace, asked.session_id, draft.day)
        if path:
            outcome.append(NoNote("already-noted"))
        else:
            try:
                path = create_note(parts.workspace, draft)
                outcome.append(Noted(path))
            except KeptForReview as kept:
                path = kept.path
                outcome.append(NoNote("for-review"))
        return {"session_note": path}

    parts.store.change(asked.key, write)
    return outcome[-1]


def create_note(workspace: Workspace, draft: Draft) -> str:
    """Write a note under the first free name and return its path.

    Raises KeptForReview if the user has to accept it first."""
    problem = check_write(draft.text)
    if problem is not None:
        raise WorkspaceError(problem.message, hint=problem.hint)
    stem = f"{daily_path(draft.day).removesuffix('.md')}-{draft.slug}"
    for number in range(1, MOST_TRIES + 1):
        path = f"{stem}{f'-{number}' if number > 1 else ''}.md"
        try:
            workspace.replace(path, draft.text, "", origin=draft.origin, outside=draft.outside)
        except WriteConflict:
            continue
        return path
    raise WorkspaceError(
        f"There are {MOST_TRIES:,} notes called {stem} already.", hint="Move some of them away."
    )


def _find_note(workspace: Workspace, session_id: str, day: str) -> str:
    """Return the note of a session from that day or the two days before it; empty if none."""
    since = (datetime.fromisoformat(day) - timedelta(days=2)).date().isoformat()
    return next((path for path, _ in find_notes(workspace, session_id, since)), "")


def find_notes(workspace: Workspace, session_id: str, since: str) -> Iterator[tuple[str, str]]:
    """Yield path and header of the notes of a session since a day."""
    for state in workspace.scan().files:
        path, day = state.path, date_of(state.path)
        if not path.startswith("memory/") or not day or day < since or path == daily_path(day):
            continue
        try:
            header = workspace.read_lines(path, 1, _HEADER_LINES).text
        except WorkspaceError:
            continue  # a file that cannot be read is not one of our notes
        if is_note_of(header, session_id):
            yield path, header


def is_note_of(text: str, session_id: str) -> bool:
    """Whether a text is the note of a session, by its header."""
    header = "\n".join(text.split("\n")[:_HEADER_LINES])
    return f"\n{_ID}{session_id}\n" in f"{header}\n"


def _last_moment(messages: Sequence[TranscriptMessage], now: datetime) -> datetime:
    """Return the time of the last message in the user's time zone; never later than now."""
    times = [datetime.fromisoformat(message.time) for message in messages if message.time]
    last = times[-1].astimezone(now.tzinfo) if times else now
    if now.tzinfo is None:
        last = last.replace(tzinfo=None)
    return min(last, now)


def _quote(text: str) -> str:
    """Quote a message, so that its Markdown has no effect; invisible characters are escaped."""
    if len(text) > LONGEST_MESSAGE:
        text = text[:LONGEST_MESSAGE].rstrip() + " …"
    return "\n".join(f"> {escape(line, joiners=False)}".rstrip() for line in text.splitlines())
