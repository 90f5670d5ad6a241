"""`clawmark recent`: print the newest entries of the memory files, newest first."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence

from clawmark.cli.arguments import count
from clawmark.cli.layout import fitted, wrap
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import columns, emit, note, paint, place, plain, say
from clawmark.model.documents import MemoryEntry

SHOWN_LINES = 4
"""Lines of a long entry that are printed; --json has all of it."""

EXAMPLES = """\
examples:
  clawmark recent
  clawmark recent -n 30 --since 7d
  clawmark recent --path 'memory/projects/**' --json

The day of an entry is in the name of its file or in a heading above it. Of a
file without either, such as MEMORY.md, the last three entries are listed with
the day the file changed."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--count", type=count(1, 10_000), default=10, metavar="N", help="how many (default: 10)"
    )
    parser.add_argument(
        "--since", default="", metavar="DAY", help="only from this day on: 2026-02-24, or 7d or 2w"
    )
    parser.add_argument("--until", default="", metavar="DAY", help="only up to this day")
    parser.add_argument("--path", default="", metavar="GLOB", help="only files whose path matches")


def run(args: Namespace) -> int:
    with open_memory(args) as memory:
        found = memory.recent(args.count, since=args.since, until=args.until, path=args.path)
    if args.json:
        emit({"entries": [entry_as_json(entry) for entry in found]})
    elif found:
        say("\n".join(entry_lines(found, min(columns(), 110))))
    elif args.since or args.until or args.path:
        note("clawmark: no entry matches.")
    else:
        note("clawmark: there are no entries yet; `clawmark remember TEXT` writes one.")
    return 0


def entry_as_json(entry: MemoryEntry) -> dict[str, object]:
    """Return an entry under the names that hits have."""
    return {
        "path": entry.path,
        "startLine": entry.start_line,
        "endLine": entry.end_line,
        "citation": entry.citation,
        "date": entry.day,
        "isDated": entry.is_dated,
        "heading": entry.heading,
        "text": entry.text,
    }


def entry_lines(found: Sequence[MemoryEntry], width: int) -> list[str]:
    """Return the entries under their days, each with its citation."""
    lines, day = list[str](), ""
    for entry in found:
        if entry.day != day:
            lines += ["", paint(entry.day, "bold")] if day else [paint(entry.day, "bold")]
            day = entry.day
        shown = list(_wrapped(entry.text, width - 4))
        if len(shown) > SHOWN_LINES:
            shown = [*shown[: SHOWN_LINES - 1], "…"]
        lines += [f"  {line}" for line in shown]
        undated = "" if entry.is_dated else " · undated; the file changed on this day"
        where = f"    {paint(place(entry.citation) + undated, 'dim')}"
        lines.append(fitted(where, max(width, len(entry.citation) + 4)))
    return lines


def _wrapped(text: str, width: int) -> Iterator[str]:
    """Yield the lines of an entry, wrapped below their first word and without blank ones."""
    for line in plain(text).split("\n"):
        indent = min(len(line) - len(line.lstrip()), 8)
        is_item = line.lstrip()[:2] in ("- ", "* ", "+ ")
        first, *others = wrap(line, width - indent - 2) or [""]
        yield from [" " * indent + first] if first else []
        yield from (" " * (indent + 2 * is_item) + other for other in others)
