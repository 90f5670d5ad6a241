"""`clawmark sessions`: list the session transcripts, or print one."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from clawmark.cli.arguments import UsageError
from clawmark.cli.as_json import as_json
from clawmark.cli.layout import cells, plural, size, table
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import columns, emit, is_terminal, note, paint, plain, say
from clawmark.composition.history.session_reports import SessionReport
from clawmark.model.reports import FlushTimes, Transcript
from clawmark.text.transcripts.chunks import render_message

SHORTEST_NAME = 24

EXAMPLES = """\
examples:
  clawmark sessions
  clawmark sessions show 7f3a
  clawmark sessions show sessions/7f3a9c1e.jsonl --json"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "words",
        nargs="*",
        metavar="show NAME",
        help="print one transcript (default: list all)",
    )


def run(args: Namespace) -> int:
    if args.words and (args.words[0] != "show" or len(args.words) != 2):
        raise UsageError("Use `clawmark sessions` or `clawmark sessions show NAME`.")
    with open_memory(args) as memory:
        if args.words:
            return _show(memory.session(args.words[1]), is_json=args.json)
        found = memory.sessions()
        folder, is_source = (
            memory.places.sessions_dir,
            "sessions" in memory.settings.memory_search.sources,
        )
    if args.json:
        emit({"folder": folder, "isSource": is_source, "sessions": as_json(found)})
        return 0
    if found:
        say("\n".join(listing(found, columns() if is_terminal(sys.stdout) else 0)))
    else:
        note(f"clawmark: there are no transcripts in {plain(folder)}.")
    if not is_source:
        note(
            'clawmark: transcripts are not searched; to search them, add "sessions" to '
            "memorySearch.sources."
        )
    return 0


def listing(found: tuple[Transcript, ...], width: int = 0) -> list[str]:
    """Return the transcripts as a table; names are shortened to fit `width` (0: no limit)."""
    has_flushes = any(one.flush is not None for one in found)
    # On a terminal, the note below the table says that no transcript is searched.
    has_status = not width or any(one.status != "not a source" for one in found)
    rows = [("NAME", "FROM", "TO", "SIZE", "LENGTH", "FORMAT", "", "FLUSHED" * has_flushes)]
    rows += [
        (
            plain(one.path),
            _when(one.first),
            _when(one.last)[len("2026-11-15 ") if one.first[:10] == one.last[:10] else 0 :],
            size(one.size),
            plural(one.messages, "message"),
            one.kind,
            one.status * has_status,
            _flushed(one.flush),
        )
        for one in found
    ]
    over = max(map(cells, table(rows, right=(3, 4)))) - width
    if width and over > 0:
        most = max(SHORTEST_NAME, max(cells(row[0]) for row in rows) - over)
        rows = [(short_name(row[0], most), *row[1:]) for row in rows]
    head, *others = table(rows, right=(3, 4))
    return [paint(head, "dim"), *others]


def short_name(path: str, most: int) -> str:
    """Shorten the path of a transcript; `sessions show` takes the beginning of the file's name."""
    name = f"…/{path.rpartition('/')[2]}"
    shorter = path if len(path) <= most else name
    return shorter if len(shorter) <= most else shorter[: most - 1] + "…"


def _show(session: SessionReport, *, is_json: bool) -> int:
    if is_json:
        messages = [
            {"line": one.line, "speaker": one.role, "time": one.time, "text": one.text}
            for one in session.messages
        ]
        known = {"key": session.key, "kind": session.kind, "note": session.note}
        uses, writes = as_json(session.uses), as_json(session.writes)
        emit({"path": session.path, "messages": messages, **known, "uses": uses, "writes": writes})
        return 0
    for one in session.messages:
        say(f"{plain(render_message(one))}\n")
    for line in memory_lines(session):
        say(plain(line))
    note(
        f"clawmark: {plural(len(session.messages), 'message')} in {plain(session.path)}; times are "
        f"UTC, secrets are masked."
    )
    return 0


def memory_lines(session: SessionReport) -> list[str]:
    """Return what a session took from the memory and what was written from it, a line each."""
    lines = [
        f"Taken from the memory at line {use.line} ({use.how}): "
        + (", ".join(use.citations) or "sources not recorded")
        for use in session.uses
    ]
    lines += [
        f"Written to {entry.record.path} ({entry.record.origin.kind})" for entry in session.writes
    ]
    return [*lines, f"Session note: {session.note}"] if session.note else lines


def _flushed(times: FlushTimes | None) -> str:
    """Describe the flushes of a session: when the last one was, and what failed since."""
    if times is None:
        return ""
    failed = plural(times.failures, "failure")
    trouble = f"{failed}, again after {_when(times.next_attempt)}" if times.failures else ""
    return " · ".join(filter(None, (_when(times.last), trouble)))


def _when(time: str) -> str:
    return f"{time[:10]} {time[11:16]}" if time else ""
