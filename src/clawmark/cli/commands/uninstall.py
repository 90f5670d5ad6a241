"""`clawmark uninstall`: list what Clawmark has made on this machine, and remove it."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from clawmark.cli.arguments import UsageError
from clawmark.cli.layout import plural, short_path, wrap
from clawmark.cli.output import columns, emit, is_terminal, note, one_line, paint, place, say
from clawmark.cli.uninstall.plan import UninstallPlan, make_plan
from clawmark.cli.uninstall.run import Outcome, uninstall

EXAMPLES = """\
examples:
  clawmark uninstall --dry-run       # list it only
  clawmark uninstall                 # list it, ask, remove it
  clawmark uninstall --with-memory   # also the memory files; cannot be undone

Memory files are kept unless --with-memory is given. Added folders are never
touched. The exit code is 3 if something could not be removed."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="list everything, change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument(
        "--with-memory",
        action="store_true",
        help="also remove the memory files, chats and captured entries, for good",
    )


def run(args: Namespace) -> int:
    plan = make_plan(args, os.path.expanduser("~"), os.environ, with_memory=args.with_memory)
    if args.dry_run or plan.is_empty or (args.json and not args.yes):
        if args.json:
            emit({"done": False, **_plan_as_json(plan)})
        else:
            _say_plan(plan)
        return 0
    if not args.json:
        _say_plan(plan)
    if not args.yes and not _confirmed(with_memory=args.with_memory):
        note("clawmark: nothing was removed.")
        return 0
    outcome = uninstall(plan)
    if args.json:
        emit({"done": not outcome.failed, **_plan_as_json(plan), "failed": list(outcome.failed)})
    else:
        _say_outcome(outcome)
    return 3 if outcome.failed else 0


def _confirmed(*, with_memory: bool) -> bool:
    if not is_terminal(sys.stdin):
        raise UsageError(
            "Uninstalling has to be confirmed, and the input is not a terminal.",
            hint="Add --yes, or --dry-run to see the list only.",
        )
    what = "Remove all of this, and the memory for good?" if with_memory else "Remove all of this?"
    say(f"{paint(what, 'bold')} [y/N]")
    try:
        return input().strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _say_plan(plan: UninstallPlan) -> None:
    if plan.is_empty:
        say("Nothing was found that Clawmark has made.")
    else:
        say(paint("Will be removed", "bold"))
    for connection in plan.connections:
        for edit in connection.edits:
            _say_item(edit.file, f"entries for {connection.name}")
    for one in plan.removals:
        _say_item(one.path, one.what)
    for heading, sentences in (
        ("Will be kept", plan.kept),
        ("Cannot be reached", plan.unreachable),
    ):
        if sentences:
            say(paint(heading, "bold"))
        _say_sentences(sentences)


def _say_item(path: str, what: str) -> None:
    say(f"  {place(short_path(path))}  {paint(f'({what})', 'dim')}")


def _say_sentences(sentences: Sequence[str]) -> None:
    for sentence in sentences:
        first, *rest = wrap(one_line(short_path(sentence)), columns() - 4)
        say("\n    ".join((f"  {first}", *rest)))


def _say_outcome(outcome: Outcome) -> None:
    if outcome.failed:
        say(paint("Could not be removed", "bold"))
        _say_sentences(outcome.failed)
        say("Correct this and run `clawmark uninstall` again.")
    else:
        say(
            f"Removed: {plural(len(outcome.removed), 'item')}. To remove the program: pip "
            "uninstall clawmark"
        )


def _plan_as_json(plan: UninstallPlan) -> dict[str, object]:
    return {
        "connections": [
            {"name": one.name, "files": [edit.file for edit in one.edits]}
            for one in plan.connections
        ],
        "removals": [{"path": one.path, "what": one.what} for one in plan.removals],
        "kept": list(plan.kept),
        "unreachable": list(plan.unreachable),
    }
