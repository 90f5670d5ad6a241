"""Run a consolidation: read the files, plan the changes, and propose those that are new.

Nothing is written to MEMORY.md or the logs. A change that waits for the user, or that the user has
decided about, is not proposed again."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from clawmark.agent.consolidation.claim_index import ClaimIndex
from clawmark.agent.consolidation.claims import MARK
from clawmark.agent.consolidation.entries import (
    LONG_TERM,
    Entry,
    Gate,
    SourceText,
    read_entries,
)
from clawmark.agent.consolidation.plan import Change, plan
from clawmark.agent.consolidation.superseded import Contradiction, find_contradictions
from clawmark.agent.consolidation.with_model import ask_model
from clawmark.agent.consolidation.wording import Wording, says_the_same, wording
from clawmark.agent.models.completer import Completer
from clawmark.agent.review.box import ProposalBox
from clawmark.agent.review.hunks import Applied, Hunk, apply_hunks, hunk_hash
from clawmark.agent.review.proposals import Proposal
from clawmark.model.errors import CompletionError, NotText
from clawmark.model.provenance import Origin, lowest
from clawmark.model.sync_report import Progress
from clawmark.text.dates import date_of
from clawmark.workspace import Workspace

TITLE = "Consolidation of the last {} days"
MOST_CHANGES = 200
"""Changes of one proposal, the first ones of the page. A later run proposes the others."""
NANOSECONDS = 1_000_000_000


class ConsolidationParts(NamedTuple):
    """What a consolidation works with."""

    workspace: Workspace
    gate: Gate
    box: ProposalBox
    now: Callable[[], datetime]
    min_days: int
    """On how many days a statement must be said or used to be promoted."""
    used_days: Callable[[Entry], int]


class Material(NamedTuple):
    """The files that a consolidation reads."""

    page: SourceText
    base_hash: str
    """The hash of MEMORY.md; empty if it does not exist."""
    entries: list[Entry]


class ConsolidationReport(NamedTuple):
    """What a consolidation found."""

    changes: tuple[Change, ...] = ()
    """The changes that were not proposed before."""
    page: str = ""
    """MEMORY.md as it is."""
    proposal: Proposal | None = None
    """The stored proposal; None if nothing is new, or in a dry run."""
    known: int = 0
    """How many changes wait already, or were decided about."""
    notes: tuple[str, ...] = ()
    """What was left out of the model's answer, and why."""
    used_model: bool = False

    @property
    def diff(self) -> str:
        """The changes as a unified diff; empty if there are none."""
        return unified_diff(self.page, [change.hunk for change in self.changes])

    @property
    def patch(self) -> str:
        """The diff, below the reason and the evidence of each change."""
        lines = list[str]()
        for number, change in enumerate(self.changes, 1):
            lines.append(f"# {number}. {change.kind}: {change.hunk.reason}")
            lines.append(f"#    evidence: {', '.join(change.hunk.citations)}")
        return "\n".join([*lines, "", self.diff]) if lines else ""


def consolidate(
    parts: ConsolidationParts,
    days: int,
    *,
    completer: Completer | None = None,
    dry_run: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> ConsolidationReport:
    """Propose what should change in MEMORY.md after the logs of the last days.

    With a `completer`, a model reviews the changes of the rules and chooses among further
    candidates. If it fails, those of the rules remain."""
    now = parts.now()
    material = read_material(parts.workspace, parts.gate, now, days, progress)
    changes = plan(
        material.page,
        material.entries,
        now.date().isoformat(),
        min_days=parts.min_days,
        used_days=parts.used_days,
    )
    notes, used_model = tuple[str, ...](), False
    if completer is not None:
        try:
            changes, notes = ask_model(
                completer, material.page, material.entries, changes, parts.gate
            )
            used_model = True
        except CompletionError as error:
            notes = (f"The model could not be asked, so the rules decided alone: {error}",)
    is_known = known_hunks(hunk for one in parts.box.list(decided=True) for hunk in one.hunks)
    unknown = [change for change in changes if not is_known(change.hunk)]
    new = tuple(unknown[:MOST_CHANGES])
    if len(unknown) > len(new):
        left = len(unknown) - len(new)
        notes = (*notes, f"{left} more were found. They are proposed by the next run.")
    report = ConsolidationReport(
        changes=new,
        page=material.page.text,
        known=len(changes) - len(unknown),
        notes=notes,
        used_model=used_model,
    )
    if not new or dry_run:
        return report
    return report._replace(proposal=_propose(parts, new, days, material.base_hash))


def contradictions(parts: ConsolidationParts, days: int) -> tuple[Contradiction, ...]:
    """Return the statements of MEMORY.md and of the logs that contradict each other."""
    material = read_material(parts.workspace, parts.gate, parts.now(), days)
    return tuple(find_contradictions(ClaimIndex(material.entries)))


def read_material(
    workspace: Workspace,
    gate: Gate,
    now: datetime,
    days: int,
    progress: Callable[[Progress], None] | None = None,
) -> Material:
    """Read MEMORY.md and the daily logs of the last days, not session notes and imports."""
    today = now.date().isoformat()
    first = (now.date() - timedelta(days=days - 1)).isoformat()
    page, base_hash, files = SourceText(LONG_TERM, ""), "", list[SourceText]()

    def is_wanted(path: str) -> bool:
        return path == LONG_TERM or (_is_daily_log(path) and first <= date_of(path) <= today)

    states = [state for state in workspace.scan().files if is_wanted(state.path)]
    for number, state in enumerate(states, 1):
        if progress is not None:
            progress(Progress(stage="text", done=number, total=len(states), label=state.path))
        try:
            document = workspace.read_document(state)
        except NotText:
            continue
        if state.path != LONG_TERM:
            files.append(SourceText(state.path, document.text))
        else:
            changed = datetime.fromtimestamp(state.mtime_ns // NANOSECONDS, now.tzinfo)
            page, base_hash = _dated(document.text, changed), document.hash
    return Material(page, base_hash, read_entries([page, *files], gate))


def _dated(text: str, changed: datetime) -> SourceText:
    return SourceText(LONG_TERM, text, changed.date().isoformat())


def known_hunks(earlier: Iterable[Hunk]) -> Callable[[Hunk], bool]:
    """Return a function that says whether a change was proposed before: it waits, was rejected, or
    was accepted, perhaps after the user had edited it.
    """
    hashes = set[str]()
    by_wording = dict[tuple[str, Wording], list[str]]()
    by_citation = dict[tuple[str, str], list[frozenset[str]]]()
    for one in earlier:
        if one.state != "accepted":
            hashes.add(_hash(one))
        if one.old:
            continue
        line = _last_line(one.new)
        by_wording.setdefault((one.path, wording(line)), []).append(line)
        for citation in one.citations[:1]:
            by_citation.setdefault((one.path, citation), []).append(frozenset(one.citations))

    def is_known(hunk: Hunk) -> bool:
        if _hash(hunk) in hashes:
            return True
        if hunk.old:
            return False
        cited = frozenset(hunk.citations)
        for citation in hunk.citations:
            if any(evidence <= cited for evidence in by_citation.get((hunk.path, citation), ())):
                return True
        line = _last_line(hunk.new)
        lines = by_wording.get((hunk.path, wording(line)), ())
        return any(says_the_same(one, line) for one in lines)

    return is_known


def _hash(hunk: Hunk) -> str:
    """Return the hash of a change. The day of a mark is left out: another log may say the same."""
    return hunk_hash(hunk._replace(new=MARK.sub(r" (\g<old>)", hunk.new)))


def unified_diff(page: str, hunks: Sequence[Hunk]) -> str:
    """Return the changes of MEMORY.md as a unified diff."""
    applied = apply_hunks(page, hunks)
    if not isinstance(applied, Applied):
        return ""
    lines = difflib.unified_diff(
        page.splitlines(keepends=True),
        applied.text.splitlines(keepends=True),
        LONG_TERM,
        f"{LONG_TERM} (proposed)",
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _propose(
    parts: ConsolidationParts, changes: Sequence[Change], days: int, base_hash: str
) -> Proposal | None:
    trust = lowest(tuple(entry.trust for change in changes for entry in change.evidence))
    return parts.box.add(
        [change.hunk for change in changes],
        title=TITLE.format(days),
        origin=Origin(actor="agent", kind="curation", trust=trust, source="consolidation"),
        base={LONG_TERM: base_hash},
    )


def _last_line(text: str) -> str:
    return text.rstrip("\n").rsplit("\n", 1)[-1]


def _is_daily_log(path: str) -> bool:
    """Whether a file is the log of a day: `memory/2026-02-24.md`."""
    day = date_of(path)
    return bool(day) and path == f"memory/{day}.md"
