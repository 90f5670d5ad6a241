"""Build the gate that keeps what came from outside out of prompts, from journal and settings, and
find whose words the entries of memory files have."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from clawmark.agent.prompt.trust_gate import GateParts, Lines, TrustGate
from clawmark.history.journal import Journal
from clawmark.model.documents import MemoryEntry
from clawmark.model.errors import ClawmarkError
from clawmark.model.provenance import EntryOrigin, Provenance
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
    from clawmark.agent.prompt.transcript_trust import outside_messages

    places = memory.places
    folders = (places.sessions_dir, places.conversations_dir)
    return outside_messages(memory.workspace, folders, path, first, last)


# --- Whose words entries have ---


def find_origins(memory: Memory, entries: Sequence[MemoryEntry]) -> tuple[EntryOrigin, ...]:
    """Return the origin of each entry. Without a readable journal, labels and files decide."""
    known = _look_up(memory, [entry.text for entry in entries])
    outside = {path: _outside_lines(memory, path, lines) for path, lines in _spans(entries).items()}
    return tuple(
        _origin(provenance, is_outside=entry.start_line in outside[entry.path])
        for entry, provenance in zip(entries, known, strict=True)
    )


def _origin(provenance: Provenance | None, *, is_outside: bool) -> EntryOrigin:
    record = provenance.origins[0] if provenance is not None and provenance.origins else None
    if is_outside:
        return EntryOrigin("external", record)
    return EntryOrigin(provenance.trust if provenance is not None else "owner", record)


def _look_up(memory: Memory, texts: Sequence[str]) -> Iterable[Provenance | None]:
    try:
        return memory.journal.look_up_each(texts)
    except ClawmarkError as error:
        # Imported here: a hook, which reads the memory at every start of a session, needs no log.
        from clawmark.system.log_records import get_logger

        get_logger("clawmark.journal").warning("The origins are not known: %s", error)
        return [None] * len(texts)


def _spans(entries: Sequence[MemoryEntry]) -> dict[str, Lines]:
    """Return the lines of each file from its first entry to its last."""
    spans: dict[str, Lines] = {}
    for entry in entries:
        span = spans.get(entry.path, Lines(entry.start_line, entry.end_line))
        spans[entry.path] = Lines(min(span.first, entry.start_line), max(span.last, entry.end_line))
    return spans


def _outside_lines(memory: Memory, path: str, within: Lines) -> frozenset[int]:
    """Return the numbers of the lines of a file that came from outside, near some of its lines."""
    try:
        found = memory.workspace.read_lines(path, 1, None, max_lines=WHOLE, max_chars=WHOLE)
    except ClawmarkError:  # the file has gone since
        return frozenset()
    outside = make_gate(memory).outside(path, found.text, within=within)
    return frozenset(number for one in outside for number in range(one.first, one.last + 1))
