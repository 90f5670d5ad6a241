"""Read the journal for people: the log, what sessions took and wrote, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from clawmark.composition.history.records import JOURNAL_FACT, accept_journal
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

COMPLETE = "Memory is complete; only where its older entries came from is not known."


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


def journal_findings(journal: Journal, parts: IndexParts, *, fix: bool = False) -> list[Finding]:
    """Return what is wrong with the journal; `fix` accepts the loss of an earlier one."""
    findings = list[Finding]()
    try:
        damaged = journal.damaged_lines()
        lost = "" if damaged else _loss(journal, parts)
    except ClawmarkError as error:
        return [Finding("problem", error.message, error.hint)]
    if lost:
        is_fixed = fix and _accept(journal, parts)
        step = f"{COMPLETE} `clawmark doctor --fix` goes on without it."
        findings.append(Finding("problem", lost, "" if is_fixed else step, fixed=is_fixed))
    if damaged:
        lines = "1 damaged line" if damaged == 1 else f"{damaged:,} damaged lines"
        what = f"The journal {journal.path} has {lines}."
        findings.append(Finding("problem", what, COMPLETE))
    failed = read_counts(parts.counts.path).get("journalErrors") if parts.counts else None
    if failed is not None:
        what = f"Writes that the journal could not record: {failed.times:,}."
        findings.append(
            Finding("note", what, "Check the state folder, its permissions and its disk.")
        )
    return findings


def _loss(journal: Journal, parts: IndexParts) -> str:
    """Say that the journal which the index knows was lost; empty if it is still there, and if the
    index cannot be read either."""
    try:
        with parts.store.snapshot() as snapshot:
            fact = snapshot.facts(JOURNAL_FACT)
    except ClawmarkError:
        return ""
    name = journal.identity
    if not fact or (name and name == fact.get("id", name)):
        return ""
    if not name:
        return f"The journal {journal.path} is missing."
    begins = journal.begins[:16].replace("T", " ")
    return f"The journal {journal.path} was lost; the present one begins at {begins}."


def _accept(journal: Journal, parts: IndexParts) -> bool:
    try:
        accept_journal(parts.store, journal)
    except ClawmarkError:  # `doctor` reports an index that cannot be written
        return False
    return True
