"""Where an SDK's session is kept: one transcript in OpenClaw's format, beside the agent's other
conversations.

In: a memory and whatever the SDK calls its session. Out: the path of its file, and the log to write
to. Which items are messages is left to the adapters."""

from __future__ import annotations

import hashlib
import os
import re
from datetime import UTC, datetime

from clawmark.agent.session.transcript_writer import TranscriptWriter
from clawmark.memory import Memory

_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def transcript_path(memory: Memory, session_id: str) -> str:
    """The file of a session; it need not be there yet."""
    return os.path.join(memory.places.conversations_dir, f"{_file_name(session_id)}.jsonl")


def open_log(memory: Memory, session_id: str) -> TranscriptWriter:
    """A log that goes on where the session's transcript ends."""
    return TranscriptWriter(
        path=transcript_path(memory, session_id),
        session_id=session_id,
        cwd=memory.workspace.root,
        now=lambda: datetime.now(UTC),
    )


def _file_name(session_id: str) -> str:
    """A name for the file; an id that is none becomes one that no other id becomes."""
    if _SAFE_NAME.fullmatch(session_id):
        return session_id
    readable = re.sub(r"[^A-Za-z0-9]+", "-", session_id).strip("-")[:40] or "session"
    return (
        f"{readable}-{hashlib.sha256(session_id.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
    )
