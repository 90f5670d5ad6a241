"""Write a session note for a coding agent, before a compaction and at the end of a session.

No model is called: the user's messages and the agent's last message before each of them are quoted.
Each note records how far into the transcript it goes, and the next one continues there, so no other
state is kept."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from clawmark.agent.notes.session_note import (
    SESSION_ID,
    NoNote,
    create_note,
    draft_note,
    find_notes,
    is_note_of,
)
from clawmark.agent.session.session import SessionEntry
from clawmark.agent.session.transcript_reader import first_time, recent_messages, transcript_size
from clawmark.composition.agent import session_access
from clawmark.hooks.events import Event
from clawmark.model.errors import KeptForReview
from clawmark.system import shared_json as statefile
from clawmark.text.transcripts.records import TranscriptMessage

if TYPE_CHECKING:
    from clawmark.memory import Memory

PATIENCE = 2.5
"""Seconds to wait for another hook that writes a note; then a duplicate is better than no note."""
_UP_TO = re.compile(r"^- \*\*Transcript\*\*: up to byte ([0-9]{1,18})$", re.MULTILINE)


def note_session_of(memory: Memory, event: Event, session_key: str) -> str:
    """Write the note and return its path; empty if there was nothing to note."""
    parts = memory.conversation(session_key).note_parts(None)
    access = session_access(memory.settings, session_key)
    may_note = parts.settings.enabled and access.is_private and access.writes
    if not may_note or not event.transcript:
        return ""
    transcript = os.path.expanduser(event.transcript)
    name = os.path.basename(transcript).partition(".jsonl")[0]
    session_id = event.session_id if SESSION_ID.fullmatch(event.session_id) else name
    with statefile.locked(os.path.join(memory.places.state_dir, "locks", "hook-notes"), PATIENCE):
        # One day earlier than the first message, which covers every time zone.
        first = first_time(transcript)
        first_day = (first - timedelta(days=1)).date().isoformat() if first else ""
        found = (
            _UP_TO.search(header)
            for _, header in find_notes(parts.workspace, session_id, first_day)
        )
        proposed = map(_UP_TO.search, _proposed_notes(memory, session_id))
        since = max((int(match[1]) for match in (*found, *proposed) if match), default=0)
        size = transcript_size(transcript)
        messages = recent_messages(transcript, parts.redactor, since=since)
        draft = draft_note(
            parts,
            SessionEntry(session_key, session_id),
            transcript,
            final_messages(messages, parts.settings.messages),
            reason="flush" if event.name == "PreCompact" else "exit",
            source=event.host,
            since=since,
            header=f"- **Transcript**: up to byte {size}",
        )
        if isinstance(draft, NoNote):
            return ""
        try:
            return create_note(parts.workspace, draft)
        except KeptForReview:
            return ""


def _proposed_notes(memory: Memory, session_id: str) -> list[str]:
    """Return the notes of a session that wait for the user, or that the user has decided about."""
    if memory.settings.review != "all":
        return []
    proposals = memory.review.list(decided=True)
    texts = [hunk.new for proposal in proposals for hunk in proposal.hunks]
    return [text for text in texts if is_note_of(text, session_id)]


def final_messages(messages: Sequence[TranscriptMessage], most: int) -> list[TranscriptMessage]:
    """Return the last messages, and of consecutive messages of the agent only the last one."""
    kept = [
        message
        for number, message in enumerate(messages)
        if message.role == "user"
        or all(after.role == "user" for after in messages[number + 1 : number + 2])
    ]
    return kept[-most:] if most > 0 else []
