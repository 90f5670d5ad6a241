"""`clawmark heartbeat`: one turn of a model over a checklist and MEMORY.md, for schedulers."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from clawmark.agent.heartbeat.decide import HEARTBEAT_OK
from clawmark.agent.heartbeat.turn import HeartbeatReport
from clawmark.cli.arguments import count, some_text
from clawmark.cli.commands.consolidate import report_as_json, show_report
from clawmark.cli.commands.flush import accept, confirm, show_diff
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import emit, note, paint, plain, say

EXAMPLES = """\
examples:
  clawmark heartbeat            # HEARTBEAT_OK, a message, or a diff
  clawmark heartbeat --apply    # on a terminal: ask, and write the changes
  clawmark heartbeat --quiet    # for cron: print nothing if nothing is to do

A model is named by --model, agents.defaults.heartbeat.model, CLAWMARK_MODEL or
agents.defaults.model. It is not asked while nothing has changed."""

_REASONS = {
    "accepted": "",
    "reviewed": "",
    "nothing-to-do": "There is no checklist, and nothing to curate.",
    "nothing-changed": "Nothing has changed since the last heartbeat.",
    "not-due": "The last heartbeat was less than agents.defaults.heartbeat.every ago.",
}
_RUNNING = "Another heartbeat is running; this one ends."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--apply",
        action="store_true",
        help="write the changes to MEMORY.md: after a question on a terminal, or without one if "
        "memory.review is off (default: agents.defaults.heartbeat.curation)",
    )
    parser.add_argument(
        "--model", type=some_text, metavar="NAME", help="the model (default: the configured one)"
    )
    parser.add_argument(
        "--days",
        type=count(1, 90),
        default=7,
        metavar="N",
        help="how many days of logs are read (default: 7)",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="ask the model even if nothing has changed or it is too early",
    )


def run(args: Namespace) -> int:
    with open_memory(args) as memory:
        report = memory.heartbeat(
            model=args.model or "", apply=args.apply, days=args.days, force=args.force
        )
        if report.message and not args.json:
            say(plain(report.message))
        if report.proposal is not None and not args.json:
            show_diff(report.proposal)
        if args.apply and report.is_waiting and confirm(args):
            for name in report.waiting:
                accept(memory, memory.review.get(name))
            report = report._replace(applied=True, waiting=(), note="")
    if args.json:
        emit(_as_json(report))
    else:
        _show(report, quiet=args.quiet)
    return 0


def _show(report: HeartbeatReport, *, quiet: bool) -> None:
    if report.because == "running":
        note(_RUNNING)
        return
    if report.proposal is not None or report.applied:
        say("Written to MEMORY.md." if report.applied else f"Nothing is written. {_next(report)}")
    elif report.note and not report.is_waiting:
        note(plain(report.note))
    if report.consolidation is not None and report.consolidation.changes:
        show_report(report.consolidation)
    if report.is_ok and not quiet:
        say(HEARTBEAT_OK)
        if _REASONS[report.because]:
            note(paint(_REASONS[report.because], "dim"))
        if report.is_waiting:
            note(paint(f"A proposal for MEMORY.md is waiting. {_next(report)}", "dim"))


def _next(report: HeartbeatReport) -> str:
    """Return how the changes are accepted."""
    return f"{report.note} To decide about the changes: clawmark review".lstrip()


def _as_json(report: HeartbeatReport) -> dict[str, object]:
    consolidation = report.consolidation
    return {
        **({"consolidation": report_as_json(consolidation)} if consolidation else {}),
        "status": HEARTBEAT_OK if report.is_ok else "attention",
        "because": report.because,
        "message": report.message,
        "diff": report.proposal.diff if report.proposal else "",
        "reasons": list(report.proposal.reasons) if report.proposal else [],
        "applied": report.applied,
        "waiting": report.is_waiting,
        "proposals": list(report.waiting),
        "note": report.note,
        "tokens": {"input": report.input_tokens, "output": report.output_tokens},
    }
