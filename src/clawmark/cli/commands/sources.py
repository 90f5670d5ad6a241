"""`clawmark sources`: list the folders that were added to the search, or remove one."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from clawmark.cli.arguments import UsageError
from clawmark.cli.as_json import as_json
from clawmark.cli.layout import plural, short_path, table
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import emit, note, paint, place, say
from clawmark.model.reports import SourceReport

EXAMPLES = """\
examples:
  clawmark sources
  clawmark sources remove notes"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "words", nargs="*", metavar="remove NAME", help="remove one source (default: list all)"
    )


def run(args: Namespace) -> int:
    if args.words and (args.words[0] != "remove" or len(args.words) != 2):
        raise UsageError("Use `clawmark sources` or `clawmark sources remove NAME`.")
    with open_memory(args) as memory:
        if args.words:
            path = memory.remove_source(args.words[1])
            if args.json:
                emit({"removed": args.words[1], "path": path})
            else:
                say(
                    f"{place(args.words[1])} is no longer searched; {short_path(path)} and its "
                    f"files are kept."
                )
            return 0
        found = memory.sources()
    if args.json:
        emit({"sources": as_json(found)})
    elif found:
        say("\n".join(listing(found)))
    else:
        note("clawmark: no folders were added; `clawmark add DIR` adds one.")
    return 0


def listing(found: tuple[SourceReport, ...]) -> list[str]:
    """Return the sources as a table; paths from the configuration have no name."""
    rows = [("NAME", "FILES", "FOLDER")]
    for one in found:
        details = [place(pattern) for pattern in one.patterns]
        details += [] if one.name else ["memorySearch.extraPaths"]
        details += (
            [f"{plural(sum(one.other_files.values()), 'other file')}"] if one.other_files else []
        )
        shown = short_path(one.path) + (paint(f" ({', '.join(details)})", "dim") if details else "")
        rows.append(
            (
                place(one.name) or "-",
                f"{one.files + one.media:,}",
                shown + (f": {place(one.problem)}" if one.problem else ""),
            )
        )
    head, *others = table(rows, right=(1,))
    return [paint(head, "dim"), *others]
