"""The session note: when a session ends, its last messages become a memory file of their own.

In: a session and its transcript. Out: `memory/YYYY-MM-DD-<slug>.md`, dated by the last message
where the user lives, or the reason why there is none. No file is ever overwritten, and no session
gets two: what was done is kept in sessions.json, and whoever died between the two finds the
session's id in the head of the note. Messages are quoted word for word; commands, tool calls,
system text, recalled memory and secrets are not in them. What is worth quoting at all is decided in
`note_content`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, TypeAlias

from clawmark.agent.models.completer import Completer
from clawmark.agent.notes.note_content import note_content
from clawmark.agent.notes.recalled_context import read_background
from clawmark.agent.notes.slug import SECONDS, slug_for
from clawmark.agent.session.recent_messages import last_said
from clawmark.agent.session.session import Fields, SessionEntry, SessionStore
from clawmark.agent.tools.base import one_line
from clawmark.model.errors import ClawmarkError, WorkspaceError, WriteConflict
from clawmark.text.dates import date_of
from clawmark.text.secrets.redact import Redactor
from clawmark.text.transcripts.records import Said
from clawmark.text.transcripts.session_keys import kind_of
from clawmark.text.untrusted.invisible_characters import escape
from clawmark.workspace import Workspace
from clawmark.workspace.daily import daily_path

Reason: TypeAlias = Literal["new", "reset", "daily", "idle", "exit", "flush"]

LONGEST_MESSAGE = 2_000
"""Characters. What is longer was pasted, and the transcript still has it."""
AUTOMATIC = ("cron", "heartbeat", "subagent")
"""Kinds of sessions in which no person speaks: a note of each of their runs would bury the others.
"""
MOST_TRIES = 1_000
"""How many notes of one name a day can have."""
_HEAD_LINES = 6
_ID = "- **Session ID**: "
_NAMES = {"user": "User", "assistant": "Assistant"}
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class NoteSettings(NamedTuple):
    """`hooks.internal.entries["session-memory"]`."""

    enabled: bool = True
    messages: int = 15
    llm_slug: bool = True


class NoteParts(NamedTuple):
    """What a note is made with."""

    completer: Completer | None
    store: SessionStore
    workspace: Workspace
    redactor: Redactor
    settings: NoteSettings
    now: Callable[[], datetime]


class Noted(NamedTuple):
    """The note of a session."""

    path: str


class NoNote(NamedTuple):
    """There is no note, and why."""

    because: Literal[
        "disabled", "automatic", "no-session", "empty", "nothing-stated", "already-noted"
    ]


class NoteFailed(NamedTuple):
    """A note could not be written; the session stays unnoted, and can be tried again."""

    message: str
    hint: str


class Draft(NamedTuple):
    """A note that is not written yet."""

    day: str
    slug: str
    text: str


NoteOutcome: TypeAlias = Noted | NoNote | NoteFailed


def note_session(
    parts: NoteParts, key: str, *, reason: Reason, source: str = "", needs_answer: bool = False
) -> NoteOutcome:
    """Write the note of a session that ends, once; with `needs_answer`, only if the agent said
    something in it.
    """
    entry = parts.store.get(key)
    if not parts.settings.enabled:
        return NoNote("disabled")
    if reason != "flush" and kind_of(key, entry.chat_type) in AUTOMATIC:
        return NoNote("automatic")
    if not entry.session_id:
        return NoNote("no-session")
    if entry.session_note:
        return NoNote("already-noted")
    draft = _draft(
        parts, entry, find_transcript(entry, parts.store.folder), reason, source, needs_answer
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
    """Write the note of a transcript that belongs to no session of ours; its file's name stands for
    the session.
    """
    session_id = os.path.basename(path).partition(".jsonl")[0]
    draft = _draft(parts, SessionEntry("unknown", session_id), path, reason, source)
    if isinstance(draft, NoNote):
        return draft
    if _find_note(parts.workspace, session_id, draft.day):
        return NoNote("already-noted")
    return Noted(create_note(parts.workspace, draft))


def _draft(
    parts: NoteParts,
    entry: SessionEntry,
    transcript: str,
    reason: Reason,
    source: str,
    needs_answer: bool = False,
) -> Draft | NoNote:
    """The note, finished, and its name, or why there is none.

    A model is asked here, with nothing locked.
    """
    wanted = parts.settings.messages
    said = last_said(transcript, parts.redactor, most_messages=wanted, most_chars=200_000)
    if not any(one.speaker == "user" for one in said):
        return NoNote("empty")
    moment = moment_of(said, parts.now())
    background = read_background(transcript, 0, parts.workspace, days_shown(moment))
    said = note_content(
        said, background.recalled, used_tools=background.used_tools, needs_answer=needs_answer
    )
    if not said:
        return NoNote("nothing-stated")
    slug = (
        slug_for(said, parts.completer if parts.settings.llm_slug else None, seconds=SECONDS)
        or f"{moment:%H%M}"
    )
    return Draft(f"{moment:%Y-%m-%d}", slug, render_note(said, entry, moment, reason, source))


def render_note(
    said: Sequence[Said],
    entry: SessionEntry,
    moment: datetime,
    reason: str,
    source: str,
    more: str = "",
) -> str:
    """The note as it stands in its file; `more` is another line of its head."""
    zone = str(moment.tzinfo) if moment.tzinfo is not None else "local time"
    head = [
        f"# Session: {moment:%Y-%m-%d %H:%M:%S} ({zone})",
        "",
        f"- **Session Key**: {one_line(entry.key, 200)}",
        f"{_ID}{one_line(entry.session_id, 200)}",
        f"- **Source**: {one_line(source or entry.chat_type or 'unknown', 100)}, {reason}",
        *filter(None, [more]),
        "",
        "## Last messages",
    ]
    parts = [f"{_NAMES[one.speaker]}{_time(one, moment)}:\n\n{_quoted(one.text)}" for one in said]
    return "\n\n".join(["\n".join(head), *parts]) + "\n"


def find_transcript(entry: SessionEntry, folder: str) -> str:
    """The transcript of a session, also when it was archived or moved since; empty when there is
    none.
    """
    if entry.session_file and os.path.isfile(entry.session_file):
        return entry.session_file
    if not _SESSION_ID.fullmatch(entry.session_id):
        return ""
    name = f"{entry.session_id}.jsonl"
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return ""
    topics = [
        one
        for one in names
        if one.startswith(f"{entry.session_id}-topic-") and one.endswith(".jsonl")
    ]
    archives = [one for one in names if one.startswith(f"{name}.reset.")]
    found = ([name] if name in names else []) or topics[-1:] or archives[-1:]
    return os.path.join(folder, found[0]) if found else ""


def _write_once(parts: NoteParts, asked: SessionEntry, draft: Draft) -> NoteOutcome:
    """Write the note with the session locked, unless somebody has."""
    made: list[NoteOutcome] = []

    def write(entry: SessionEntry) -> Fields | None:
        if entry.session_id != asked.session_id or entry.session_note:
            made.append(NoNote("already-noted"))
            return None
        path = _find_note(parts.workspace, asked.session_id, draft.day)
        if path:
            made.append(NoNote("already-noted"))
        else:
            path = create_note(parts.workspace, draft)
            made.append(Noted(path))
        return {"session_note": path}

    parts.store.change(asked.key, write)
    return made[-1]


def create_note(workspace: Workspace, draft: Draft) -> str:
    """Write a note under the first name that is free."""
    stem = f"{daily_path(draft.day).removesuffix('.md')}-{draft.slug}"
    for number in range(1, MOST_TRIES + 1):
        path = f"{stem}{f'-{number}' if number > 1 else ''}.md"
        try:
            workspace.replace(path, draft.text, "")
        except WriteConflict:
            continue
        return path
    raise WorkspaceError(
        f"There are {MOST_TRIES:,} notes called {stem} already.", hint="Move some of them away."
    )


def _find_note(workspace: Workspace, session_id: str, day: str) -> str:
    """The note that a session has already, made on that day or on the two before."""
    since = (datetime.fromisoformat(day) - timedelta(days=2)).date().isoformat()
    return next((path for path, _ in note_heads(workspace, session_id, since)), "")


def note_heads(workspace: Workspace, session_id: str, since: str) -> Iterator[tuple[str, str]]:
    """The notes of a session that were made since a day, each with the lines at its head."""
    for state in workspace.scan().files:
        path, day = state.path, date_of(state.path)
        if not path.startswith("memory/") or not day or day < since or path == daily_path(day):
            continue
        try:
            head = workspace.read_lines(path, 1, _HEAD_LINES).text
        except WorkspaceError:
            continue  # a file that cannot be read is no note of ours
        if f"\n{_ID}{session_id}\n" in f"{head}\n":
            yield path, head


def moment_of(said: Sequence[Said], now: datetime) -> datetime:
    """When the last thing was said, where the user lives; never later than now."""
    times = [datetime.fromisoformat(one.time) for one in said if one.time]
    last = times[-1].astimezone(now.tzinfo) if times else now
    if now.tzinfo is None:
        last = last.replace(tzinfo=None)
    return min(last, now)


def days_shown(moment: datetime) -> tuple[str, ...]:
    """The days whose logs a session of that moment is shown without asking."""
    return tuple((moment - timedelta(days=back)).date().isoformat() for back in range(2))


def _time(said: Said, moment: datetime) -> str:
    return (
        f" ({datetime.fromisoformat(said.time).astimezone(moment.tzinfo):%H:%M})"
        if said.time
        else ""
    )


def _quoted(text: str) -> str:
    """A message as a quotation: whatever Markdown is in it stays in it, and what would not be seen
    is written out.
    """
    if len(text) > LONGEST_MESSAGE:
        text = text[:LONGEST_MESSAGE].rstrip() + " …"
    return "\n".join(f"> {escape(line, joiners=False)}".rstrip() for line in text.splitlines())
