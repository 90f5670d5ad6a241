"""`clawmark ls`: list the memory files with their entries, size and last change."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from clawmark.cli.arguments import some_text
from clawmark.cli.as_json import as_json
from clawmark.cli.layout import cells, fitted, middle, plural, size, table
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import columns, emit, is_terminal, note, paint, place, say
from clawmark.model.documents import MemoryFile
from clawmark.model.errors import FileMissing

INTERMIXED = True
"""Flags may stand between the paths."""
SHORTEST_PATH = 20

EXAMPLES = """\
examples:
  clawmark ls
  clawmark ls memory/projects 'memory/2026-11-*'
  clawmark ls --time                      # the last changed first
  clawmark ls --files | xargs -n 1 clawmark get"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "patterns",
        nargs="*",
        type=some_text,
        metavar="PATH",
        help="only this file, this folder or paths that match (* ? [] **)",
    )
    parser.add_argument("--time", action="store_true", help="the last changed files first")
    parser.add_argument("--files", action="store_true", help="print only the paths")


def run(args: Namespace) -> int:
    with open_memory(args) as memory:
        found = memory.files(*args.patterns)
    if args.patterns and not found:
        wanted = " or ".join(place(pattern) for pattern in args.patterns[:3])
        raise FileMissing(
            f"There is no memory file {wanted}.", hint="`clawmark ls` lists all of them."
        )
    if args.time:
        found = tuple(sorted(found, key=lambda file: file.changed, reverse=True))
    if args.json:
        emit({"files": [file.path for file in found] if args.files else as_json(found)})
    elif args.files:
        for file in found:
            say(place(file.path))
    elif found:
        say("\n".join(listing(found, columns() if is_terminal(sys.stdout) else 0)))
    else:
        note("clawmark: there are no memory files yet; `clawmark remember TEXT` makes one.")
    return 0


def listing(found: Sequence[MemoryFile], width: int = 0) -> list[str]:
    """Return the files as a table with a last line of totals; paths are shortened to fit `width`
    (0: no limit).
    """
    rows = [("PATH", "ENTRIES", "SIZE", "CHANGED")]
    rows += [
        (
            place(file.path),
            "–" if file.entries is None else f"{file.entries:,}",
            size(file.size),
            f"{file.changed[:10]} {file.changed[11:16]}",
        )
        for file in found
    ]
    over = max(map(cells, table(rows, right=(1, 2)))) - width
    if width and over > 0:
        most = max(SHORTEST_PATH, max(cells(row[0]) for row in rows) - over)
        rows = [(middle(row[0], most), *row[1:]) for row in rows]
    head, *others = table(rows, right=(1, 2))
    entries = plural(sum(file.entries or 0 for file in found), "entry").replace("entrys", "entries")
    total = f"{plural(len(found), 'file')}, {entries}, {size(sum(file.size for file in found))}"
    lines = [paint(head, "dim"), *others, paint(total, "dim")]
    return [fitted(line, width) for line in lines] if width else lines
