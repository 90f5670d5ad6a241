"""`clawmark log`: print the journal, who wrote what into the memory and from what."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import get_args

from clawmark.cli.arguments import count, some_text
from clawmark.cli.layout import fitted, middle, plural
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import columns, emit, note, one_line, paint, place, say
from clawmark.model.provenance import JournalRecord, Kind, LogEntry
from clawmark.text.untrusted.origin_labels import without_comments

INTERMIXED = True
"""Flags may stand before and after the path."""
_INDENT = " " * 18
_SHORTEST_PATH = 20

EXAMPLES = """\
examples:
  clawmark log
  clawmark log MEMORY.md -n 50
  clawmark log --kind import --since 7d
  clawmark log --session agent:main:main --json

Each line has the time, what wrote, how far that is trusted (owner, agent or
external), the file, and how many entries were new. Text that you write with an
editor is recorded as `edited` by the next sync that finds it."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "path",
        nargs="?",
        type=some_text,
        metavar="PATH",
        help="only this file, this folder or paths that match (* ? [] **)",
    )
    parser.add_argument(
        "--count", type=count(1, 1_000_000), default=20, metavar="N", help="how many (default: 20)"
    )
    parser.add_argument(
        "--since", default="", metavar="DAY", help="only from this day on: 2026-02-24, or 7d or 2w"
    )
    parser.add_argument(
        "--kind",
        default="",
        choices=get_args(Kind),
        metavar="KIND",
        help=f"only this kind: {', '.join(get_args(Kind))}",
    )
    parser.add_argument("--session", default="", metavar="KEY", help="only this session")


def run(args: Namespace) -> int:
    with open_memory(args) as memory:
        found = memory.log(
            args.count, path=args.path or "", since=args.since, kind=args.kind, session=args.session
        )
    if args.json:
        emit({"records": [entry_as_json(entry) for entry in found]})
    elif found:
        say("\n".join(log_lines(found, min(columns(), 110))))
    elif args.path or args.since or args.kind or args.session:
        note("clawmark: no record matches.")
    else:
        note("clawmark: nothing is recorded yet; `clawmark remember TEXT` writes an entry.")
    return 0


def entry_as_json(entry: LogEntry) -> dict[str, object]:
    """Return a record and the text that is left of it."""
    record, origin = entry.record, entry.record.origin
    body: dict[str, object] = {
        "id": record.id,
        "time": record.time,
        "actor": origin.actor,
        "kind": origin.kind,
        "trust": origin.trust,
        "session": origin.session,
        "source": origin.source,
        "action": record.action,
        "path": record.path,
        "entries": list(record.entries),
        "state": state_of(record) or "done",
        "texts": list(entry.texts),
    }
    if record.external:
        body["external"] = list(record.external)
    if record.moved_from:
        body["movedFrom"] = record.moved_from
    return body


def state_of(record: JournalRecord) -> str:
    """Return why a write may not have happened; empty if it is done."""
    if record.dropped:
        return "not written"
    return "" if record.done else "not finished"


def log_lines(found: Sequence[LogEntry], width: int) -> list[str]:
    """Return two or three lines for each record, none wider than `width`."""
    return [fitted(line, width) for entry in found for line in _record_lines(entry, width)]


def _record_lines(entry: LogEntry, width: int) -> list[str]:
    record, origin = entry.record, entry.record.origin
    when = f"{record.time[:10]} {record.time[11:16]}"
    path = middle(record.path, max(_SHORTEST_PATH, width - 52))
    trust = paint(f"{origin.trust:<8}", "yellow" if origin.trust == "external" else "dim")
    lines = [f"{when}  {origin.kind:<8}  {trust}  {paint(path, 'cyan')}  {_done(record)}".rstrip()]
    if entry.texts:
        more = f" (and {len(entry.texts) - 1} more)" if len(entry.texts) > 1 else ""
        stated = next((one for one in entry.texts if not one.startswith("#")), entry.texts[0])
        text = one_line(without_comments(stated))
        lines.append(f"{_INDENT}{fitted(text, width - len(_INDENT) - len(more))}{more}")
    about = " · ".join(place(one) for one in (origin.session, origin.source) if one)
    if about:
        lines.append(paint(f"{_INDENT}{about}", "dim"))
    return lines


def _done(record: JournalRecord) -> str:
    """Return what was done: `+3`, `deleted`, or why it may not have happened."""
    parts = [f"+{len(record.entries)}"] if record.entries else []
    if record.external and record.origin.trust != "external":
        parts.append(f"{len(record.external)} from outside")
    if record.action == "delete":
        parts.append("deleted")
    elif record.action == "rename":
        parts.append(f"was {middle(record.moved_from, 30)}")
    elif not record.entries:
        parts.append(plural(0, "new entry").replace("entrys", "entries"))
    state = state_of(record)
    return ", ".join([*parts, paint(state, "yellow")] if state else parts)
