"""`clawmark consolidate`: propose changes of MEMORY.md from the daily logs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from clawmark.cli.arguments import UsageError, count, some_text
from clawmark.cli.layout import plural, wrap
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import columns, emit, note, one_line, paint, plain, say
from clawmark.cli.progress import ProgressBar
from clawmark.cli.review.text import diff_pieces

if TYPE_CHECKING:
    from clawmark.agent.consolidation.plan import Change
    from clawmark.agent.consolidation.run import ConsolidationReport

EXAMPLES = """\
examples:
  clawmark consolidate                # propose changes; clawmark review decides
  clawmark consolidate --dry-run      # show them, store nothing
  clawmark consolidate --days 7 --no-model

Rules find what is said twice, superseded, expired, or said on several days.
With a model (--model, CLAWMARK_MODEL or agents.defaults.model), the model
reviews what they found. MEMORY.md and the logs are not written."""

_TITLES = {
    "duplicate": "Said twice",
    "superseded": "Superseded",
    "expired": "Expired",
    "promoted": "Promoted",
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--days",
        type=count(1, 365),
        metavar="N",
        help="how many days of logs are read (default: memory.consolidation.days, 30)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show the changes, and store no proposal"
    )
    parser.add_argument(
        "--model",
        type=some_text,
        metavar="NAME",
        help="the model that reviews the changes (default: the configured one)",
    )
    parser.add_argument("--no-model", action="store_true", help="let the rules decide alone")


def run(args: Namespace) -> int:
    if args.model and args.no_model:
        raise UsageError("--model and --no-model exclude each other.")
    with open_memory(args) as memory, ProgressBar(enabled=not args.json) as bar:
        report = memory.consolidate(
            days=args.days or 0,
            model=args.model or "",
            rules_only=args.no_model,
            dry_run=args.dry_run,
            progress=bar.update if bar.is_shown else None,
        )
    if args.json:
        emit(report_as_json(report))
    else:
        show_report(report, dry_run=args.dry_run)
    return 0


def show_report(report: ConsolidationReport, *, dry_run: bool = False) -> None:
    """Print the changes with their reasons and evidence, and what to do next."""
    for change in report.changes:
        for line in _change_lines(change):
            say(line)
    for one in report.notes:
        note(paint(plain(one), "dim"))
    if not report.changes and report.known:
        found = plural(report.known, "change")
        say(f"Nothing new: {found} found before. To see what waits: clawmark review list")
    elif not report.changes:
        say("MEMORY.md needs no change.")
    elif dry_run or report.proposal is None:
        say("Nothing is stored. To propose the changes: clawmark consolidate")
    else:
        proposal = plain(report.proposal.id)
        say(f"Proposed as {proposal}. To decide: clawmark review")


def report_as_json(report: ConsolidationReport) -> dict[str, object]:
    """Return a report as JSON values."""
    return {
        "proposal": report.proposal.id if report.proposal else None,
        "changes": [
            {
                "kind": change.kind,
                "old": change.hunk.old,
                "new": change.hunk.new,
                "reason": change.hunk.reason,
                "citations": list(change.hunk.citations),
            }
            for change in report.changes
        ],
        "diff": report.diff,
        "known": report.known,
        "notes": list(report.notes),
        "usedModel": report.used_model,
    }


def _change_lines(change: Change) -> Iterator[str]:
    hunk, width = change.hunk, columns()
    title = _TITLES[change.kind]
    first, *more = wrap(f"{title}: {one_line(hunk.reason)}", width)
    yield f"{paint(title, 'bold')}{first.removeprefix(title)}"
    yield from more
    for sign, text, style in (("-", hunk.old, "red"), ("+", hunk.new, "green")):
        for line in text.split("\n"):
            if line.strip():
                pieces = diff_pieces(f"{sign}{plain(line)}", width)
                yield from (paint(piece, style) for piece in pieces)
    for line in wrap(f"evidence: {one_line(', '.join(hunk.citations))}", width):
        yield paint(line, "dim")
    yield ""
