"""Keep the session of an SDK as a transcript next to the agent's other transcripts."""

from __future__ import annotations

import hashlib
import os
import re
from datetime import UTC, datetime

from clawmark.agent.session.transcript_writer import TranscriptWriter
from clawmark.memory import Memory

_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def transcript_path(memory: Memory, session_id: str) -> str:
    """Return the file of a session, which may not exist yet."""
    return os.path.join(memory.places.conversations_dir, f"{_file_name(session_id)}.jsonl")


def open_transcript(memory: Memory, session_id: str) -> TranscriptWriter:
    """Return a writer that continues the session's transcript."""
    return TranscriptWriter(
        path=transcript_path(memory, session_id),
        session_id=session_id,
        cwd=memory.workspace.root,
        now=lambda: datetime.now(UTC),
    )


def _file_name(session_id: str) -> str:
    """Return a unique file name for a session id."""
    if _SAFE_NAME.fullmatch(session_id):
        return session_id
    readable = re.sub(r"[^A-Za-z0-9]+", "-", session_id).strip("-")[:40] or "session"
    digest = hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{readable}-{digest[:16]}"
