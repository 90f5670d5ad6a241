"""`clawmark undo`: take back the last write of an agent."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from clawmark.cli.arguments import some_text
from clawmark.cli.commands.restore import accept
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import emit, paint, place, say, say_diff
from clawmark.engine.versions.workspace_history import FileChange
from clawmark.model.errors import NothingToUndo

EXAMPLES = """\
examples:
  clawmark undo                # the last write of an agent or an import
  clawmark undo --any          # of anyone, also `clawmark remember`
  clawmark undo --yes --json

The file is then what it was before that write, byte by byte. If it changed
since, only the lines of that write are removed; if they are not there any more,
nothing is written. What was taken back stays in the history: `clawmark restore`
brings it back."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "write",
        nargs="?",
        type=some_text,
        metavar="ID",
        help="the id of a write, from `clawmark log --json` (default: the last one)",
    )
    parser.add_argument(
        "--any", action="store_true", help="the last write of anyone, not only of an agent"
    )
    parser.add_argument("--yes", action="store_true", help="write the file without asking")


def run(args: Namespace) -> int:
    with open_memory(args) as memory:
        history = memory.history
        try:
            change = history.plan_undo(anyone=args.any, write=args.write or "")
        except NothingToUndo as error:
            if not args.json:
                say_diff(error.diff)
            raise
        was_done = change.is_done
        is_written = not was_done and accept(args, change, "Take this back?")
        if is_written:
            history.apply(change)
    if args.json:
        emit(_as_json(change, is_written or was_done))
    elif was_done:
        say(f"The interrupted undo of {_describe(change)} is complete.")
    elif is_written:
        say(f"Took back {_describe(change)}.")
    else:
        say("Nothing is written.")
    return 0


def _describe(change: FileChange) -> str:
    write = change.write
    if write is None:
        return f"a write to {paint(place(change.path), 'bold')}"
    when = f"{write.time[:10]} {write.time[11:16]}"
    who = f"{write.origin.kind} by the {write.origin.actor}"
    return f"the write to {paint(place(change.path), 'bold')} ({who}, {when})"


def _as_json(change: FileChange, is_done: bool) -> dict[str, object]:
    write = change.write
    return {
        "path": change.path,
        "write": write.id if write else None,
        "actor": write.origin.actor if write else None,
        "kind": write.origin.kind if write else None,
        "time": write.time if write else None,
        "deleted": change.after is None and not change.moved_to,
        "movedTo": change.moved_to,
        "diff": change.diff,
        "changed": is_done,
    }
