"""`clawmark pull`: copy shared spaces into the workspace, or list them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from clawmark.cli.arguments import UsageError
from clawmark.cli.as_json import as_json
from clawmark.cli.layout import plural, table
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import emit, note, paint, place, plain, say
from clawmark.model.errors import ConfigError

if TYPE_CHECKING:
    from clawmark.backends.team.base import SpaceInfo
    from clawmark.backends.team.files.pulling import Pulled

SHOWN = 20

EXAMPLES = """\
examples:
  clawmark pull                  # all spaces of team.spaces
  clawmark pull team             # one of them
  clawmark pull --list           # the spaces that you may read"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "spaces", nargs="*", metavar="SPACE", help="the spaces to pull (default: team.spaces)"
    )
    parser.add_argument(
        "--list", action="store_true", help="list the spaces that you may read, and pull nothing"
    )
    parser.add_argument("--verbose", action="store_true", help="list all files")


def run(args: Namespace) -> int:
    if args.list and args.spaces:
        raise UsageError("--list lists all spaces and takes no names.")
    with open_memory(args) as memory:
        team = memory.team
        if args.list:
            return _list(team.spaces(), team.names, as_json_wanted=args.json)
        if not args.spaces and not team.names:
            raise ConfigError(
                "team.spaces names no shared space.",
                key="team.spaces",
                hint="Name one: `clawmark pull --list` shows those that you may read.",
            )
        done = team.pull(*args.spaces)
    if args.json:
        emit({"spaces": [as_json(one) for one in done]})
    else:
        for one in done:
            _show(one, verbose=args.verbose)
    return _exit_code(done)


def _exit_code(done: tuple[Pulled, ...]) -> int:
    """Return 3 if a space was not pulled completely, and 1 if a copy was changed here."""
    if any(one.problem for one in done):
        return 3
    return 1 if any(one.conflicts or one.refused for one in done) else 0


def _show(pulled: Pulled, *, verbose: bool) -> None:
    changed = [("write", path) for path in pulled.written]
    changed += [("delete", path) for path in pulled.deleted]
    shown = changed if verbose else changed[:SHOWN]
    for verb, path in shown:
        say(f"{verb:<8}{place(path)}")
    if len(changed) > len(shown):
        say(paint(f"… and {len(changed) - len(shown)} more; --verbose lists them", "dim"))
    written, deleted = plural(len(pulled.written), "file"), plural(len(pulled.deleted), "file")
    say(f"{plain(pulled.space)}: {written} written, {deleted} deleted")
    for path in pulled.conflicts:
        note(f"clawmark: {place(path)} was changed here and in the space; it is left as it is.")
    if pulled.conflicts:
        note("clawmark: Move your version away, or delete it, and pull again.")
    for path in pulled.kept:
        note(f"clawmark: {place(path)} was withdrawn, but changed here; it is kept.")
    for reason in pulled.refused:
        note(f"clawmark: {plain(reason)}")
    if pulled.problem:
        note(f"clawmark: {plain(pulled.problem)} {plain(pulled.next_step)}".rstrip())


def _list(spaces: tuple[SpaceInfo, ...], used: tuple[str, ...], *, as_json_wanted: bool) -> int:
    if as_json_wanted:
        listed = []
        for one in spaces:
            fields = as_json(one)
            assert isinstance(fields, dict)
            listed.append(fields | {"used": one.name in used})
        emit({"spaces": listed})
        return 0
    if not spaces:
        say("You may read no shared space.")
        return 0
    rows = [("space", "access", "documents", "entries", "")]
    rows += [
        (
            plain(one.name),
            "read and write" if one.may_write else "read",
            f"{one.documents:,}",
            f"{one.entries:,}",
            "" if one.name in used else "not in team.spaces",
        )
        for one in spaces
    ]
    say("\n".join(table(rows, right=(2, 3))))
    return 0
