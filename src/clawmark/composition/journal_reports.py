"""Read the journal for people: the log, and what is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from clawmark.composition.records import JOURNAL_FACT
from clawmark.engine.maintenance.listing import matcher
from clawmark.engine.parts import IndexParts
from clawmark.history.journal import Journal, entry_hash
from clawmark.model.errors import ClawmarkError, WorkspaceError
from clawmark.model.provenance import JournalRecord, LogEntry
from clawmark.model.reports import Finding
from clawmark.system.shared_counts import read_counts
from clawmark.text.entry_content import split_entries
from clawmark.text.filters import make_filters
from clawmark.workspace import Workspace


def read_log(
    workspace: Workspace,
    journal: Journal,
    count: int,
    *,
    today: Callable[[], str],
    path: str,
    since: str,
    kind: str,
    session: str,
) -> tuple[LogEntry, ...]:
    """Return the newest records that match, newest first; an empty filter matches all."""
    day = make_filters(since=since, until="", path="", source="", today=today).since
    is_wanted = matcher([path] if path else ["**"])
    found = list[JournalRecord]()
    for record in journal.newest():
        if day and record.time[:10] < day:
            break
        origin = record.origin
        if is_wanted(record.path) and kind in ("", origin.kind) and session in ("", origin.session):
            found.append(record)
            if len(found) == count:
                break
    return with_texts(workspace, found)


def with_texts(workspace: Workspace, records: Sequence[JournalRecord]) -> tuple[LogEntry, ...]:
    """Return records with those of their entries that are still in the files."""
    texts = {path: _texts(workspace, path) for path in {record.path for record in records}}
    return tuple(LogEntry(one, _left(one, texts[one.path])) for one in records)


def _left(record: JournalRecord, texts: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(texts[one] for one in record.entries if one in texts)


def _texts(workspace: Workspace, path: str) -> dict[str, str]:
    """Return the entries of a file by their hashes; nothing if it cannot be read."""
    try:
        found = workspace.read_exact(path)
    except WorkspaceError:  # not a memory file, or a folder
        return {}
    entries = split_entries(found.text) if found is not None else ()
    return {entry_hash(entry): entry for _, _, entry in entries}


def journal_findings(journal: Journal, parts: IndexParts) -> list[Finding]:
    """Return what is wrong with the journal."""
    findings = list[Finding]()
    step = "Memory is complete; only where its older entries came from is not known."
    if _has_had_journal(parts) and not os.path.exists(journal.path):
        findings.append(Finding("problem", f"The journal {journal.path} is missing.", step))
    try:
        damaged = journal.damaged_lines()
    except ClawmarkError as error:
        return [*findings, Finding("problem", error.message, error.hint)]
    if damaged:
        lines = "1 damaged line" if damaged == 1 else f"{damaged:,} damaged lines"
        what = f"The journal {journal.path} has {lines}."
        findings.append(Finding("problem", what, step))
    failed = read_counts(parts.counts.path).get("journalErrors") if parts.counts else None
    if failed is not None:
        what = f"Writes that the journal could not record: {failed.times:,}."
        findings.append(
            Finding("note", what, "Check the state folder, its permissions and its disk.")
        )
    return findings


def _has_had_journal(parts: IndexParts) -> bool:
    """Whether the index knows of a journal; False if the index cannot be read either."""
    try:
        with parts.store.snapshot() as snapshot:
            return bool(snapshot.facts(JOURNAL_FACT))
    except ClawmarkError:
        return False
