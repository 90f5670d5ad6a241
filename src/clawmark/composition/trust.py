"""Build the gate that keeps what came from outside out of prompts, from journal and settings."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING

from clawmark.agent.prompt.trust_gate import GateParts, TrustGate
from clawmark.history.journal import Journal
from clawmark.model.errors import ClawmarkError
from clawmark.text.globs import path_matcher
from clawmark.text.transcripts.session_keys import is_private, kind_of

if TYPE_CHECKING:
    from clawmark.memory import Memory

WHOLE = 1 << 40

# Imports inside the functions below are late because a server that starts needs none of them.


def make_gate(memory: Memory) -> TrustGate:
    """Return the gate of a memory."""
    if memory.trust_gate is None:
        journal = memory.journal
        trusted = [path_matcher(one) for one in memory.settings.memory.trusted_paths]
        parts = GateParts(
            external=lambda hashes: _external(journal, hashes),
            version=lambda: journal.version,
            trusts_path=lambda path: any(matches(path) for matches in trusted),
            read=lambda path: _read(memory, path),
            outside_messages=lambda path, first, last: _outside_messages(memory, path, first, last),
        )
        memory.trust_gate = TrustGate(parts)
    return memory.trust_gate


def _external(journal: Journal, hashes: Collection[str]) -> frozenset[str]:
    """Return the hashes of entries from outside; without a readable journal, labels decide."""
    try:
        return journal.external(hashes)
    except ClawmarkError:
        return frozenset()


def _read(memory: Memory, path: str) -> str | None:
    try:
        return memory.workspace.read_lines(path, 1, None, max_lines=WHOLE, max_chars=WHOLE).text
    except ClawmarkError:
        return None


def _outside_messages(memory: Memory, path: str, first: int, last: int) -> list[str] | None:
    """Return the messages on lines of a transcript that came from outside; None for all.

    Everything in a session that is not proven private did. In a private one the user's own messages
    did not, and the agent's only if it used tools other than those of the memory."""
    from clawmark.agent.notes.recalled_context import uses_other_tools
    from clawmark.text.transcripts.chunks import render_message
    from clawmark.workspace.transcripts.messages import read_messages

    sessions = memory.workspace.sessions
    if sessions is None or not sessions.owns(path):
        return None
    absolute = sessions.absolute(path)
    if not _is_private_transcript(memory, absolute):
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


def _is_private_transcript(memory: Memory, transcript: str) -> bool:
    """Whether a transcript is that of one person with their agent.

    One of the agent's own must belong to a session that is known to be; folders of transcripts in
    the settings are those of the user's coding agents."""
    from clawmark.agent.session.session import SessionStore

    folder, name = os.path.split(os.path.realpath(transcript))
    places = memory.places
    own = {os.path.realpath(one) for one in (places.sessions_dir, places.conversations_dir)}
    if folder not in own:
        return True
    store = SessionStore(folder)
    known = store.keys()
    entries = map(store.get, known)
    return any(
        entry.session_id
        and name.startswith(f"{entry.session_id}.jsonl")
        and is_private(kind_of(entry.key, entry.chat_type))
        for entry in entries
    )
