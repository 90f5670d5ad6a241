"""`clawmark verify`: compare every row of the index with its file; exit code 1 if one differs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from clawmark.cli.as_json import as_json
from clawmark.cli.layout import plural
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import emit, paint, place, say

SHOWN = 20

EXAMPLES = """\
examples:
  clawmark verify && echo ok"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--verbose", action="store_true", help="list every difference")


def run(args: Namespace) -> int:
    with open_memory(args) as memory:
        report = memory.verify()
    if args.json:
        emit(as_json(report))
        return 1 if report.problems else 0
    checked = (
        f"{plural(report.files, 'file')}, "
        f"{plural(report.chunks, 'chunk')}, {plural(report.vectors, 'vector')}"
    )
    if not report.problems:
        say(f"{paint('ok', 'green')}  {checked} checked; the index matches the files")
        return 0
    shown = report.problems if args.verbose else report.problems[:SHOWN]
    for problem in shown:
        say(f"{paint('differs', 'red')}  {place(problem)}")
    if len(report.problems) > len(shown):
        say(f"… and {len(report.problems) - len(shown)} more; --verbose lists them")
    say(
        f"{plural(len(report.problems), 'difference')} in {checked}; `clawmark index` updates "
        f"files that are out of date,"
    )
    say("`clawmark index --force` rebuilds the whole index")
    return 1
