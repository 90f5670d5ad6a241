"""`clawmark restore`: bring back a memory file as it was in a version."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from clawmark.cli.arguments import UsageError, some_text
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import confirm, emit, is_interactive, paint, place, say, say_diff
from clawmark.engine.versions.workspace_history import FileChange
from clawmark.model.values import parse_citation

EXAMPLES = """\
examples:
  clawmark restore MEMORY.md@3f2a91c0         # an id of `clawmark history`
  clawmark restore MEMORY.md@yesterday --yes
  clawmark restore memory/2026-11-01.md@2026-11-03

Of a day, the last version is restored. A file that was deleted comes back. What
is replaced stays in the history, so another restore takes this one back."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "target",
        type=some_text,
        metavar="PATH@VERSION",
        help="a memory file, and the beginning of a version's id, a day or a time",
    )
    parser.add_argument("--yes", action="store_true", help="write the file without asking")


def run(args: Namespace) -> int:
    path, at, version = args.target.rpartition("@")
    if not at or not path or not version:
        raise UsageError(
            "Name the file and the version as PATH@VERSION.",
            hint="For example: clawmark restore MEMORY.md@yesterday",
        )
    with open_memory(args) as memory:
        history = memory.history
        change = history.plan_restore(parse_citation(path).path.removeprefix("./"), version)
        is_written = change.before != change.after and accept(args, change, "Restore this?")
        if is_written or change.before == change.after:
            history.apply(change)
    assert change.version is not None
    name = change.version.id[:8]
    if args.json:
        ids = {"path": change.path, "version": change.version.id}
        emit({**ids, "diff": change.diff, "changed": is_written})
    elif is_written:
        say(f"{paint(place(change.path), 'bold')} is as in version {name} again.")
    elif change.before == change.after:
        say(f"{paint(place(change.path), 'bold')} is already as in version {name}.")
    else:
        say("Nothing is written.")
    return 0


def accept(args: Namespace, change: FileChange, question: str) -> bool:
    """Show a change and ask for it; `--yes` accepts it, and without a terminal it is needed."""
    if not args.json:
        say_diff(change.diff)
    if args.yes:
        return True
    if args.json or not is_interactive():
        raise UsageError(
            "Nothing is written: there is no terminal to ask on.", hint="Add --yes to write it."
        )
    return confirm(question)
