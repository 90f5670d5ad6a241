"""Find the messages of a transcript that came from outside."""

from __future__ import annotations

import os
from collections.abc import Collection

from clawmark.agent.notes.recalled_context import uses_other_tools
from clawmark.agent.session.session import SessionStore
from clawmark.model.errors import ClawmarkError
from clawmark.text.transcripts.chunks import render_message
from clawmark.text.transcripts.session_keys import is_private, kind_of
from clawmark.workspace import Workspace
from clawmark.workspace.transcripts.messages import read_messages


def outside_messages(
    workspace: Workspace, own_folders: Collection[str], path: str, first: int, last: int
) -> list[str] | None:
    """Return the messages on lines of a transcript that came from outside; None for all.

    Everything in a session that is not proven private did. In a private one the user's own messages
    did not, and the agent's only if it used tools other than those of the memory. `own_folders` are
    those of the agent's own transcripts."""
    sessions = workspace.sessions
    if sessions is None or not sessions.owns(path):
        return None
    absolute = sessions.absolute(path)
    if not _is_private(absolute, own_folders):
        return None
    try:
        if not uses_other_tools(absolute):
            return []
        with sessions.open(path) as opened:
            return [
                render_message(message)
                for message in read_messages(opened, sessions.clean)
                if message.role != "user" and first <= message.line <= last
            ]
    except (ClawmarkError, OSError):
        return None


def _is_private(transcript: str, own_folders: Collection[str]) -> bool:
    """Whether a transcript is that of one person with their agent.

    One of the agent's own must belong to a session that is known to be; folders of transcripts in
    the settings are those of the user's coding agents."""
    folder, name = os.path.split(os.path.realpath(transcript))
    if folder not in {os.path.realpath(one) for one in own_folders}:
        return True
    store = SessionStore(folder)
    entries = map(store.get, store.keys())
    return any(
        entry.session_id
        and name.startswith(f"{entry.session_id}.jsonl")
        and is_private(kind_of(entry.key, entry.chat_type))
        for entry in entries
    )
