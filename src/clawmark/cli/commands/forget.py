"""`clawmark forget`: remove something from the memory for good.

A plan is shown first: every place where it lives. Nothing is removed before it is confirmed."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections import Counter

from clawmark.agent.forget.values import ForgetPlan
from clawmark.agent.forget.wording import HEADINGS, describe_report
from clawmark.cli.arguments import UsageError, some_text
from clawmark.cli.as_json import as_json
from clawmark.cli.layout import fitted, short_path, wrap
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import columns, emit, is_terminal, note, one_line, paint, say
from clawmark.memory import Memory

MAX_LINES = 10
"""Entries of one place, and sentences about the unreachable, that are shown."""

EXAMPLES = """\
examples:
  clawmark forget "the code of the garage"
  clawmark forget --path memory/2026-11-15-garage.md
  clawmark forget --lines memory/2026-11-15.md#L3-L9
  clawmark forget --session 1f0c2a64-6f3e-4c0c-9d5e-2a1b7f3e9c11
  clawmark forget --source chatgpt            # an import, or an added folder
  clawmark forget --since 2026-11-14          # what agents have written since then

The plan lists every place. After you confirm it, the text is removed from all
of them, and imports, flushes, notes, capture and curation do not bring it back.
`clawmark remember` does."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "text", nargs="*", metavar="TEXT", help="forget every entry that contains this text"
    )
    parser.add_argument("--path", type=some_text, metavar="PATH", help="a memory file or folder")
    parser.add_argument(
        "--lines",
        type=some_text,
        metavar="CITATION",
        help="the entries on these lines: memory/2026-11-15.md#L3-L9",
    )
    parser.add_argument(
        "--session",
        type=some_text,
        metavar="ID",
        help="a session: its transcript, its notes, and what was written from it",
    )
    parser.add_argument(
        "--source",
        type=some_text,
        metavar="NAME",
        help="an import (chatgpt, claude …), or an added folder, whose own files stay",
    )
    parser.add_argument(
        "--since",
        type=some_text,
        metavar="DAY",
        help="what agents have written since a day: 2026-11-14, 7d, 2w",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument("--dry-run", action="store_true", help="show the plan and change nothing")


def run(args: Namespace) -> int:
    given = {
        "text": " ".join(args.text).strip(),
        **{
            name: getattr(args, name) or ""
            for name in ("path", "lines", "session", "source", "since")
        },
    }
    if sum(map(bool, given.values())) != 1:
        raise UsageError(
            "Say in one way what to forget: TEXT, --path, --lines, --session, --source or --since."
        )
    with open_memory(args) as memory:
        plan = memory.plan_forget(**given)
        if args.dry_run or plan.is_empty or (args.json and not args.yes):
            return _show(plan, args)
        return _carry_out(memory, plan, args)


def _show(plan: ForgetPlan, args: Namespace) -> int:
    if args.json:
        emit({"done": False, **_plan_as_json(plan)})
    elif plan.is_empty:
        say("Nothing was found that could be forgotten.")
        if len(plan.unreachable) > 1:  # more than the sentence about backups
            _say_unreachable(plan.unreachable)
    else:
        _say_plan(plan)
    return 0


def _carry_out(memory: Memory, plan: ForgetPlan, args: Namespace) -> int:
    if not args.json:
        _say_plan(plan)
    if not args.yes and not _confirmed():
        note("clawmark: nothing was forgotten.")
        return 0
    report = memory.forget(plan)
    if args.json:
        emit({"done": True, **_plan_as_json(plan), "report": as_json(report)})
    else:
        say("\n".join(wrap(describe_report(report), columns())))
    return 0


def _confirmed() -> bool:
    if not is_terminal(sys.stdin):
        raise UsageError(
            "Forgetting has to be confirmed, and the input is not a terminal.",
            hint="Add --yes, or --dry-run to see the plan only.",
        )
    say(f"{paint('Forget all of this for good? It cannot be undone.', 'bold')} [y/N]")
    try:
        return input().strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _say_plan(plan: ForgetPlan) -> None:
    counts = Counter(one.kind for one in plan.found)
    for kind, heading in HEADINGS.items():
        if not counts[kind]:
            continue
        say(f"{paint(heading, 'bold')} ({counts[kind]:,})")
        shown = [one for one in plan.found if one.kind == kind]
        for one in shown[:MAX_LINES]:
            where = paint(_on_one_line(short_path(one.where)), "cyan")
            say(fitted(f"  {where}  {one_line(one.text)}".rstrip(), columns()))
        if len(shown) > MAX_LINES:
            say(f"  … and {len(shown) - MAX_LINES:,} more; --json lists all")
    _say_unreachable(plan.unreachable)


def _say_unreachable(sentences: tuple[str, ...]) -> None:
    if sentences:
        say(paint("what cannot be reached", "bold"))
    for sentence in (*sentences[: MAX_LINES - 1], *sentences[MAX_LINES - 1 :][-1:]):
        first, *rest = wrap(one_line(sentence), columns() - 4)
        say("\n    ".join((f"  {first}", *rest)))
    if len(sentences) > MAX_LINES:
        say(f"  … and {len(sentences) - MAX_LINES:,} more; --json lists all")


def _on_one_line(path: str) -> str:
    return path.replace("\n", "\\n").replace("\t", "\\t")


def _plan_as_json(plan: ForgetPlan) -> dict[str, object]:
    return {
        "found": [one._asdict() for one in plan.found],
        "deletedFiles": list(plan.files),
        "deletedTranscripts": list(plan.transcripts),
        "unreachable": list(plan.unreachable),
    }
