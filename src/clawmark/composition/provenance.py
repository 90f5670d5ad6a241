"""Use the journal: record what a sync finds, find where hits came from, read the log."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from clawmark.engine.maintenance.listing import matcher
from clawmark.engine.parts import IndexParts
from clawmark.history.journal import Journal, entries_between, entry_hash, entry_hashes
from clawmark.model.errors import ClawmarkError, WorkspaceError
from clawmark.model.provenance import JournalRecord, LogEntry, Provenance
from clawmark.model.reports import Finding
from clawmark.model.values import Hit, is_in_workspace
from clawmark.store.base import IndexStore
from clawmark.system.shared_counts import read_counts
from clawmark.text.write_check import split_entries
from clawmark.workspace import Workspace

JOURNAL_FACT = "journal"
"""The name of the fact in the index that there is a journal."""
BUSY = timedelta(minutes=1)
"""A write that began less than this ago may still be going on."""
_WHOLE = 1 << 40

logger = logging.getLogger("clawmark.journal")


# --- What a sync records ---


def record_found(store: IndexStore, journal: Journal, files: Sequence[tuple[str, str]]) -> None:
    """Record text of changed files (path and text) that no write has recorded.

    Files of added folders and extra paths are not recorded. A failure is logged: it costs labels,
    and the files are indexed all the same."""
    own = [(path, text) for path, text in files if is_in_workspace(path)]
    if not own:
        return
    try:
        journal.add_found(own)
        _note_journal(store, journal)
    except (ClawmarkError, OSError) as error:
        logger.warning("Changes of files could not be recorded in the journal: %s", error)


def record_outcomes(workspace: Workspace, journal: Journal) -> None:
    """Find out whether the writes that were interrupted have happened, and record it."""
    try:
        for record in journal.unfinished():
            if journal.age(record) < BUSY:
                continue
            if _has_happened(workspace, record):
                journal.finish(record)
            else:
                journal.drop(record)
    except (ClawmarkError, OSError) as error:
        logger.warning("The journal could not be brought up to date: %s", error)


def _has_happened(workspace: Workspace, record: JournalRecord) -> bool:
    try:
        if record.action == "delete":
            return workspace.read_exact(record.path) is None
        if record.action == "rename":
            return workspace.read_exact(record.moved_from) is None
        found = workspace.read_exact(record.path)
    except WorkspaceError:  # a folder, or a file that is not memory any more
        return False
    return found is not None and set(record.entries) <= set(entry_hashes(found.text))


def _note_journal(store: IndexStore, journal: Journal) -> None:
    """Note in the index that there is a journal, so that its loss is noticed."""
    with store.snapshot() as snapshot:
        if snapshot.facts(JOURNAL_FACT):
            return
    if os.path.exists(journal.path):
        with store.transaction() as transaction:
            transaction.set_facts(JOURNAL_FACT, {"path": journal.path})


# --- Where hits came from ---


def origins_of(
    workspace: Workspace, journal: Journal, hits: Iterable[Hit]
) -> tuple[Provenance | None, ...]:
    """Return where the passage of each hit came from, by the entries that its lines belong to;
    None for a passage that is not text of a memory file, and if the journal cannot be read.
    """
    wanted = tuple(hits)
    try:
        return tuple(_origin(workspace, journal, hit) for hit in wanted)
    except ClawmarkError as error:
        logger.warning("%s", error)
        return (None,) * len(wanted)


def _origin(workspace: Workspace, journal: Journal, hit: Hit) -> Provenance | None:
    if hit.source != "memory" or hit.mime or not is_in_workspace(hit.path):
        return None
    try:
        found = workspace.read_lines(hit.path, 1, None, max_lines=_WHOLE, max_chars=_WHOLE)
    except WorkspaceError:  # the file has gone since
        return None
    return journal.look_up(entries_between(found.text, hit.start_line, hit.end_line))


# --- The log ---


def read_log(
    workspace: Workspace,
    journal: Journal,
    count: int,
    *,
    path: str,
    since: str,
    kind: str,
    session: str,
) -> tuple[LogEntry, ...]:
    """Return the newest records that match, newest first; an empty filter matches all."""
    is_wanted = matcher([path] if path else ["**"])
    found = list[JournalRecord]()
    for record in journal.newest():
        if since and record.time[:10] < since:
            break
        origin = record.origin
        if is_wanted(record.path) and kind in ("", origin.kind) and session in ("", origin.session):
            found.append(record)
            if len(found) == count:
                break
    texts = {path: _texts(workspace, path) for path in {record.path for record in found}}
    return tuple(LogEntry(one, _left(one, texts[one.path])) for one in found)


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


# --- What is wrong with the journal ---


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
