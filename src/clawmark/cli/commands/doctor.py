"""`clawmark doctor`: find problems and explain how to fix them; --fix fixes the safe ones."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from clawmark.cli.as_json import as_json
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import emit, paint, place, plain, say
from clawmark.model.reports import Finding

EXAMPLES = """\
examples:
  clawmark doctor
  clawmark doctor --fix
  clawmark doctor --probe   # embeds one word with the provider and tries the vector engine

The exit code is 1 if a problem remains."""


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


def run(args: Namespace) -> int:
    with open_memory(args, warn=False) as memory:
        findings = memory.doctor(fix=args.fix, probe=args.probe)
    left = [finding for finding in findings if finding.level == "problem" and not finding.fixed]
    if args.json:
        emit({"findings": as_json(findings), "problems": len(left)})
    else:
        say("\n".join(line for finding in findings for line in finding_lines(finding)))
    return 1 if left else 0


def finding_lines(finding: Finding) -> list[str]:
    """Return a finding with its level, and its next step below."""
    marks = {
        "ok": ("ok      ", "green"),
        "note": ("note    ", "cyan"),
        "problem": ("problem ", "red"),
    }
    mark, colour = ("fixed   ", "green") if finding.fixed else marks[finding.level]
    lines = [f"{paint(mark, colour)}{place(finding.what)}"]
    if finding.next_step:
        lines.append(f"        {paint('→', 'dim')} {plain(finding.next_step)}")
    return lines
