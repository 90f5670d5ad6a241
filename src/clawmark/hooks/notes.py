"""A session of a coding agent in; a note of what was said since the last note out, in a memory file
of its own.

Used before a compaction and at the end. No model is called and nothing is made up: the user's
messages and, of all that the agent said in between, its last words are quoted as they were. Each
note says how far into the transcript it goes, so that the next one begins there: what has been
noted is in the notes themselves, and nothing has to be kept in step. How a note looks and how it is
written is `runtime/session_note.py`'s part."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from clawmark.agent.notes.note_content import note_content
from clawmark.agent.notes.recalled_context import read_background
from clawmark.agent.notes.session_note import (
    Draft,
    create_note,
    days_shown,
    moment_of,
    note_heads,
    render_note,
)
from clawmark.agent.notes.slug import slug_for
from clawmark.agent.prompt.session_files import is_private, kind_of
from clawmark.agent.session.recent_messages import last_said, transcript_size
from clawmark.agent.session.session import SessionEntry
from clawmark.hooks.events import Event
from clawmark.system import shared_json as statefile
from clawmark.text.transcripts.records import Said, read_said

if TYPE_CHECKING:
    from clawmark.memory import Memory

PATIENCE = 2.5
"""Seconds to wait for another hook that writes a note; after that, twice is better than not at all.
"""
_LOOKED_AT = 1 << 20
"""Bytes at the beginning of a transcript in which its first dated message is looked for."""
_UP_TO = re.compile(r"^- \*\*Transcript\*\*: up to byte ([0-9]{1,18})$", re.MULTILINE)
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def note_session_of(memory: Memory, event: Event, session_key: str) -> str:
    """Write the note; the path of the file, empty when there was nothing to note."""
    parts = memory.conversation(session_key).parts
    if not parts.note.enabled or not is_private(kind_of(session_key)) or not event.transcript:
        return ""
    transcript = os.path.expanduser(event.transcript)
    name = os.path.basename(transcript).partition(".jsonl")[0]
    session_id = event.session_id if _SESSION_ID.fullmatch(event.session_id) else name
    with statefile.locked(os.path.join(memory.places.state_dir, "locks", "hook-notes"), PATIENCE):
        heads = [
            head for _, head in note_heads(parts.workspace, session_id, _first_day(transcript))
        ]
        since = max((int(found[1]) for head in heads if (found := _UP_TO.search(head))), default=0)
        size = transcript_size(transcript)
        said = exchanges(last_said(transcript, parts.redactor, since=since), parts.note.messages)
        moment = moment_of(said, parts.now())
        background = read_background(transcript, since, parts.workspace, days_shown(moment))
        said = note_content(said, background.recalled, used_tools=background.used_tools)
        if not said:
            return ""
        entry = SessionEntry(session_key, session_id)
        reason = "flush" if event.name == "PreCompact" else "exit"
        text = render_note(
            said, entry, moment, reason, event.host, f"- **Transcript**: up to byte {size}"
        )
        slug = slug_for(said, None) or f"{moment:%H%M}"
        return create_note(parts.workspace, Draft(f"{moment:%Y-%m-%d}", slug, text))


def _first_day(transcript: str) -> str:
    """The day before the first message, so that it is early enough in every time zone; empty when
    nothing is dated.
    """
    if not os.path.isfile(transcript):
        return ""
    with open(transcript, "rb") as file:
        lines = file.read(_LOOKED_AT).decode("utf-8", "replace").split("\n")
    times = (
        said.time
        for number, line in enumerate(lines, 1)
        if (said := read_said(line, number)) and said.time
    )
    first = next(times, "")
    return (datetime.fromisoformat(first) - timedelta(days=1)).date().isoformat() if first else ""


def exchanges(said: Sequence[Said], most: int) -> list[Said]:
    """The last messages, of each run of the agent's only the last: what it says between two tools
    is noise soon after.
    """
    kept = [
        one
        for number, one in enumerate(said)
        if one.speaker == "user"
        or all(after.speaker == "user" for after in said[number + 1 : number + 2])
    ]
    last = kept[-most:] if most > 0 else []
    return last if any(one.speaker == "user" for one in last) else []
