"""Keep what a user stated in a finished turn, and recall what was kept for the next message."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice

from clawmark.agent.plugins.base import PluginSession, Turn
from clawmark.agent.plugins.lancedb.capture_rules import MOST_A_TURN, Statement, statements
from clawmark.agent.plugins.lancedb.settings import LanceSettings
from clawmark.agent.prompt.recall import Recalled, recall_block
from clawmark.agent.prompt.recall_rule import says_something, worth_recalling
from clawmark.agent.tools.gate import refuse
from clawmark.backends.lancedb.backend import LanceBackend
from clawmark.backends.lancedb.entries import Captured
from clawmark.backends.lancedb.writing import Note, Stored, store
from clawmark.model.errors import KeptForReview
from clawmark.model.values import Query
from clawmark.text.secrets.redact import Redactor
from clawmark.text.transcripts.session_keys import is_private
from clawmark.text.untrusted.injection_flags import flags_of
from clawmark.text.untrusted.recalled_blocks import strip_recalled
from clawmark.text.write_check import FileText

MOST_CANDIDATES = 12
"""Statements of one turn that are examined; a turn with more is pasted text."""
RECALLED = 3
_LOOKED_AT = 8
_OUTSIDE = ("import", "tool")


def capture(
    backend: LanceBackend,
    session: PluginSession,
    turn: Turn,
    *,
    settings: LanceSettings,
    redactor: Redactor,
    now: Callable[[], datetime],
) -> list[Stored]:
    """Store what the user stated in a turn, at most three entries; return what was new.

    In a heartbeat, which may write, a scheduler speaks and not the user."""
    if not turn.succeeded or not (session.access.writes and session.access.is_private):
        return []
    kept: list[Stored] = []
    for statement in islice(_stated(turn, settings, redactor), MOST_CANDIDATES):
        note = Note(
            text=statement.text,
            category=statement.category,
            importance=statement.importance,
            origin="user",
        )
        try:
            stored = store(backend, note, now(), session.key or "")
        except KeptForReview:
            continue
        if stored.is_new:
            kept.append(stored)
        if len(kept) == MOST_A_TURN:
            break
    return kept


def recall(
    backend: LanceBackend,
    session: PluginSession,
    message: str,
    *,
    settings: LanceSettings,
    vectors: bool = True,
) -> str | None:
    """Return what was captured about a message as a block of quoted data; None for nothing.

    Only private sessions get one. Entries that came from outside, or read like an instruction, are
    never recalled automatically."""
    if not (session.access.reads and is_private(session.access.kind)):
        return None
    asked = strip_recalled(message).strip()[: settings.recall_max_chars]
    if not says_something(asked):
        return None
    query = Query(text=asked, max_results=_LOOKED_AT, min_score=0.0, explain=True)
    found, entries = backend.recall(query, vectors=vectors)
    worth = {hit.citation for hit in worth_recalling(found)}
    items = [
        _recalled(entry, hit.citation)
        for hit, entry in zip(found.hits, entries, strict=True)
        if hit.citation in worth and entry.origin not in _OUTSIDE and not flags_of(entry.text)
    ]
    return recall_block(items[:RECALLED]) or None


def _stated(turn: Turn, settings: LanceSettings, redactor: Redactor) -> Iterator[Statement]:
    """Yield the statements of the user that the write gate accepts."""
    for message in turn.messages:
        if message.role != "user":
            continue
        for statement in statements(
            message.text,
            redactor=redactor,
            longest=settings.capture_max_chars,
            triggers=settings.custom_triggers,
        ):
            if refuse(statement.text, target=FileText("", ""), redactor=redactor) is None:
                yield statement


def _recalled(entry: Captured, citation: str) -> Recalled:
    return Recalled(
        citation=citation,
        date=entry.date,
        origin=entry.origin,
        text=f"[{entry.category}] {entry.text}",
    )
