"""Open the journal and the history, record what a sync finds, and find where hits came from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from clawmark.composition import make_clock
from clawmark.config.paths import Places
from clawmark.config.schema import Settings
from clawmark.history.journal import Journal, entries_between, entry_hashes
from clawmark.model.errors import ClawmarkError, WorkspaceError, reason_of
from clawmark.model.provenance import JournalRecord, Provenance
from clawmark.model.values import Hit, is_in_workspace
from clawmark.store.base import IndexStore
from clawmark.workspace import Workspace

JOURNAL_FACT = "journal"
"""The name of the fact in the index which journal there is: its path and its identity."""
BUSY = timedelta(minutes=1)
"""A write that began less than this ago may still be going on."""
_WHOLE = 1 << 40


def make_journal(
    places: Places, settings: Settings, clock: Callable[[], datetime] | None = None
) -> Journal:
    """Return the journal of an agent's writes."""
    path = os.path.join(places.state_dir, "agents", places.agent_id, "journal.jsonl")
    return Journal(path, make_clock(settings, clock))


def as_of_folder(places: Places) -> str:
    """Return the folder of the indexes of earlier versions."""
    return os.path.join(places.state_dir, "agents", places.agent_id, "as-of")


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
        _warn("Changes of files could not be recorded in the journal", error)


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
        _warn("The journal could not be brought up to date", error)


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
    """Note in the index which journal there is, so that its loss is noticed.

    Another journal is not noted in its place: `accept_journal` does that when the user asks."""
    with store.snapshot() as snapshot:
        if snapshot.facts(JOURNAL_FACT).get("id"):
            return
    if journal.identity:
        accept_journal(store, journal)


def accept_journal(store: IndexStore, journal: Journal) -> None:
    """Note in the index the journal that there is now; a lost one is not reported any more."""
    name = journal.identity
    with store.transaction() as transaction:
        transaction.set_facts(JOURNAL_FACT, {"path": journal.path, "id": name} if name else {})


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
        _warn("The origins of hits are not known", error)
        return (None,) * len(wanted)


def _origin(workspace: Workspace, journal: Journal, hit: Hit) -> Provenance | None:
    if hit.source != "memory" or hit.mime or not is_in_workspace(hit.path):
        return None
    try:
        found = workspace.read_lines(hit.path, 1, None, max_lines=_WHOLE, max_chars=_WHOLE)
    except WorkspaceError:  # the file has gone since
        return None
    return journal.look_up(entries_between(found.text, hit.start_line, hit.end_line))


def _warn(message: str, error: Exception) -> None:
    # Imported here: nothing is logged unless the journal fails.
    from clawmark.system.log_records import get_logger

    get_logger("clawmark.journal").warning("%s: %s.", message, reason_of(error))
