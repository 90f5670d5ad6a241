"""Build the consolidation of a memory from its settings, its journal and its proposals."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from clawmark.agent.consolidation.entries import LONG_TERM, Gate
from clawmark.agent.consolidation.run import (
    ConsolidationParts,
    ConsolidationReport,
    consolidate,
    contradictions,
)
from clawmark.agent.consolidation.superseded import Contradiction
from clawmark.agent.consolidation.usage import UsageCounts
from clawmark.agent.models.completer import Completer
from clawmark.agent.session.setup import configured_model, needed_model
from clawmark.composition import make_journal, redactor_of
from clawmark.composition.usage import usage_file
from clawmark.history.journal import Journal, decide_origin, entry_hashes
from clawmark.model.errors import WorkspaceError
from clawmark.model.provenance import JournalRecord, Trust, lowest
from clawmark.system import shared_json

if TYPE_CHECKING:
    from clawmark.config.paths import Places
    from clawmark.memory import Memory
    from clawmark.model.sync_report import Progress

ONE_SYNC = timedelta(minutes=1)
"""How far apart the times of the records of one sync may be."""
CONTRADICTION_DAYS = 365
"""How far back `clawmark doctor --contradictions` reads the logs."""


def make_consolidation(memory: Memory) -> ConsolidationParts:
    """Return what a consolidation of this memory works with."""
    options = memory.settings.consolidation
    records = _records_by_entry(make_journal(memory.places, memory.settings))
    used_days = UsageCounts(usage_file(memory.places)).read()
    return ConsolidationParts(
        workspace=memory.workspace,
        gate=Gate(
            redactor=redactor_of(memory.settings.memory_search),
            trust_of=lambda text: _trust(records, text),
            written_on=lambda text: _written_on(records, text),
            is_forgotten=memory.workspace.is_forgotten,
            known_day=_known_days(records),
        ),
        box=memory.review,
        now=memory.now,
        min_days=options.min_days,
        used_days=lambda entry: used_days(entry.text),
    )


def run_consolidation(
    memory: Memory,
    completer: Completer | None,
    *,
    model: str,
    rules_only: bool,
    days: int,
    dry_run: bool,
    progress: Callable[[Progress], None] | None = None,
) -> ConsolidationReport:
    """Consolidate a memory; the named or configured model reviews it, if there is one."""
    chosen = completer
    if model and chosen is None:
        chosen = needed_model(memory.settings, os.environ, "review the consolidation", model)
    if chosen is None and not rules_only:
        chosen = configured_model(memory.settings, os.environ)
    days = days or memory.settings.consolidation.days
    parts = make_consolidation(memory)
    return consolidate(
        parts,
        days,
        completer=None if rules_only else chosen,
        dry_run=dry_run,
        progress=progress,
    )


def find_contradictions(memory: Memory) -> tuple[Contradiction, ...]:
    """Return the statements of a memory that contradict each other, the newest first."""
    return contradictions(make_consolidation(memory), CONTRADICTION_DAYS)


def consolidate_if_due(
    memory: Memory, completer: Completer | None, model: str
) -> ConsolidationReport | None:
    """Consolidate if `memory.consolidation.every` has passed since the last time; else None."""
    every = memory.settings.consolidation.every
    if not every:
        return None
    path, now = _folder(memory.places, "consolidation.json"), memory.now()
    try:
        with shared_json.locked(path, 0.0) as is_ours:
            if not is_ours or not _is_due(path, now, every):
                return None
            report = run_consolidation(
                memory, completer, model=model, rules_only=False, days=0, dry_run=False
            )
            shared_json.save(path, {"done": now.isoformat()}, durable=True)
            return report
    except OSError as error:
        raise WorkspaceError(
            f"{path} cannot be used: {error.strerror or type(error).__name__}.",
            hint="Check the state folder and its disk.",
        ) from error


def _is_due(path: str, now: datetime, every: float) -> bool:
    try:
        done = datetime.fromisoformat(str((shared_json.load(path) or {}).get("done", "")))
    except (OSError, ValueError):
        return True
    # A minute earlier is in time: schedulers are not exact.
    return not timedelta(0) <= now - done < timedelta(minutes=every) - timedelta(minutes=1)


def _folder(places: Places, name: str) -> str:
    return os.path.join(places.state_dir, "agents", places.agent_id, name)


def _records_by_entry(journal: Journal) -> dict[str, list[JournalRecord]]:
    """Return the records of each entry of the journal, the oldest first."""
    found = dict[str, list[JournalRecord]]()
    for record in journal.records():
        for entry in record.entries:
            found.setdefault(entry, []).append(record)
    return found


def _trust(records: dict[str, list[JournalRecord]], text: str) -> Trust:
    """Return how far an entry is trusted; as `Journal.look_up`, with the journal read once."""
    origins = (decide_origin(records.get(one, [])) for one in entry_hashes(text))
    return lowest(tuple(record.origin.trust for record in origins if record is not None))


def _known_days(records: dict[str, list[JournalRecord]]) -> Callable[[str], str]:
    """Return what gives the day on which an entry of MEMORY.md was written.

    The first record of the page has what was there before the journal; its day is not known."""
    times = (one.time for found in records.values() for one in found if one.path == LONG_TERM)
    first = min(map(datetime.fromisoformat, times), default=None)

    def known_day(text: str) -> str:
        found = [one.time for name in entry_hashes(text) for one in records.get(name, [])]
        if first is None or not found:
            return ""
        written = max(found, key=datetime.fromisoformat)
        return written[:10] if datetime.fromisoformat(written) - first > ONE_SYNC else ""

    return known_day


def _written_on(records: dict[str, list[JournalRecord]], text: str) -> str:
    """Return the day on which an entry was last written; empty if the journal does not say."""
    times = [record.time for one in entry_hashes(text) for record in records.get(one, [])]
    return max(times, default="")[:10]
