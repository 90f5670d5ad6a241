"""Open the journal and the history of an agent, which live in its state folder."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from clawmark.composition import make_clock
from clawmark.config.paths import Places
from clawmark.config.schema import Settings
from clawmark.engine.parts import IndexParts
from clawmark.history.journal import Journal, entries_between, entry_hashes
from clawmark.model.errors import ClawmarkError, WorkspaceError
from clawmark.model.provenance import JournalRecord, Provenance
from clawmark.model.reports import Finding
from clawmark.model.values import Hit, is_in_workspace
from clawmark.store.base import IndexStore
from clawmark.system.shared_counts import read_counts
from clawmark.workspace import Workspace

JOURNAL_FACT = "journal"
"""The name of the fact in the index that there is a journal."""
BUSY = timedelta(minutes=1)
"""A write that began less than this ago may still be going on."""
_WHOLE = 1 << 40

logger = logging.getLogger("clawmark.journal")


def make_journal(
    places: Places, settings: Settings, clock: Callable[[], datetime] | None = None
) -> Journal:
    """Return the journal of an agent's writes."""
    return Journal(journal_path(places), make_clock(settings, clock))


def journal_path(places: Places) -> str:
    """Return the file of an agent's journal."""
    return os.path.join(places.state_dir, "agents", places.agent_id, "journal.jsonl")


def history_folder(places: Places) -> str:
    """Return the folder of the versions of an agent's workspace."""
    return os.path.join(places.state_dir, "agents", places.agent_id, "history.git")


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
