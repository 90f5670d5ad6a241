"""Build the gate that keeps what came from outside out of prompts, from journal and settings."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import TYPE_CHECKING

from clawmark.agent.prompt.trust_gate import GateParts, TrustGate
from clawmark.history.journal import Journal
from clawmark.model.errors import ClawmarkError
from clawmark.text.globs import path_matcher

if TYPE_CHECKING:
    from clawmark.memory import Memory

WHOLE = 1 << 40


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
    # Imported here: a server that starts needs no transcripts.
    transcripts = import_module("clawmark.agent.prompt.transcript_trust")
    places = memory.places
    found: list[str] | None = transcripts.outside_messages(
        memory.workspace, (places.sessions_dir, places.conversations_dir), path, first, last
    )
    return found
