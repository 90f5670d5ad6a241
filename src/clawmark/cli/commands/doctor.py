"""`clawmark doctor`: find problems and explain how to fix them; --fix fixes the safe ones."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from clawmark.cli.arguments import UsageError
from clawmark.cli.as_json import as_json
from clawmark.cli.layout import plural, short_paths, wrap
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import (
    columns,
    emit,
    fold,
    is_terminal,
    one_line,
    paint,
    place,
    plain,
    say,
)
from clawmark.model.reports import Finding

if TYPE_CHECKING:
    from clawmark.agent.consolidation.claims import Claim

EXAMPLES = """\
examples:
  clawmark doctor
  clawmark doctor --fix
  clawmark doctor --contradictions   # statements that cannot both be true
  clawmark doctor --probe            # embeds one word, tries the vector engine

The exit code is 1 if a problem remains, or a contradiction is found."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--fix",
        action="store_true",
        help="move a damaged index away, index what is due, make state files private",
    )
    parser.add_argument(
        "--probe",
        action="store_true",
        help="embed one word with the configured provider and try the vector engine",
    )
    parser.add_argument(
        "--contradictions",
        action="store_true",
        help="list statements of MEMORY.md and the logs that contradict each other, and nothing "
        "else",
    )


def run(args: Namespace) -> int:
    if args.contradictions:
        return _show_contradictions(args)
    with open_memory(args, warn=False) as memory:
        findings = memory.doctor(fix=args.fix, probe=args.probe)
    left = [finding for finding in findings if finding.level == "problem" and not finding.fixed]
    if args.json:
        emit({"findings": as_json(findings), "problems": len(left)})
    else:
        say("\n".join(line for finding in findings for line in finding_lines(finding)))
    return 1 if left else 0


def _show_contradictions(args: Namespace) -> int:
    """List the contradictions, the newest first; the exit code is 1 if there are some."""
    if args.fix or args.probe:
        raise UsageError("--contradictions goes without --fix and --probe.")
    with open_memory(args, warn=False) as memory:
        found = memory.contradictions()
    if args.json:
        emit(
            {
                "contradictions": [
                    {"newer": _claim(one.newer), "older": _claim(one.older)} for one in found
                ]
            }
        )
    elif not found:
        say("No contradictions were found.")
    else:
        for one in found:
            for claim in (one.newer, one.older):
                where = plain(claim.entry.citation)
                text = f"{where} ({_day(claim)}): {one_line(claim.sentence)}"
                first, *more = wrap(text, columns() - 2)
                say(f"{paint(where, 'cyan')}{first.removeprefix(where)}")
                for line in more:
                    say(f"  {line}")
            say("")
        say(f"{plural(len(found), 'contradiction')}. Correct the wrong statement, or let")
        say("`clawmark consolidate` propose what is superseded.")
    return 1 if found else 0


def _day(claim: Claim) -> str:
    """Return the day of a log; for MEMORY.md, the last day on which it may have been written."""
    return f"last changed {claim.entry.day}" if claim.entry.is_long_term else claim.entry.day


def _claim(claim: Claim) -> dict[str, object]:
    entry = claim.entry
    return {
        "citation": entry.citation,
        "day": entry.day,
        "statement": claim.sentence,
        "value": claim.phrase,
    }


def finding_lines(finding: Finding) -> list[str]:
    """Return a finding with its level, and its next step below."""
    marks = {
        "ok": ("ok      ", "green"),
        "note": ("note    ", "cyan"),
        "problem": ("problem ", "red"),
    }
    mark, colour = ("fixed   ", "green") if finding.fixed else marks[finding.level]
    lines = [f"{paint(mark, colour)}{place(short_paths(finding.what))}"]
    if finding.next_step:
        lines.append(f"        {paint('→', 'dim')} {plain(finding.next_step)}")
    if not is_terminal(sys.stdout):
        return lines
    return [piece for line in lines for piece in fold(line, columns(), " " * len(mark))]
