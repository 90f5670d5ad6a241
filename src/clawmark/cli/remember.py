"""`clawmark remember`: a note in; a line in today's log out, on disk before the command ends."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from clawmark.cli.arguments import UsageError
from clawmark.cli.opening import open_memory
from clawmark.cli.output import emit, paint, place, say

MAX_BYTES = 1024 * 1024

EXAMPLES = """\
examples:
  clawmark remember "We chose PostgreSQL for billing"
  clawmark remember --to MEMORY.md "Prefers short answers"
  git log -1 --format=%s | clawmark remember -"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("text", nargs="+", metavar="TEXT", help="what to remember; - reads it from standard input")
    parser.add_argument("--to", default="", metavar="FILE", help="MEMORY.md or another memory file (default: today's log)")


def run(args: Namespace) -> int:
    text = _from_stdin() if args.text == ["-"] else " ".join(args.text)
    if not text.strip():
        raise UsageError("There is nothing to remember: the text is empty.")
    with open_memory(args) as memory:
        written = memory.append(text, to=args.to)
        workspace = memory.places.workspace
    if args.json:
        emit(
            {
                "path": written.path,
                "startLine": written.start_line,
                "endLine": written.end_line,
                "citation": written.citation,
                "workspace": workspace,
            }
        )
        return 0
    from clawmark.cli.layout import short_path

    say(f"Remembered in {paint(place(written.citation), 'cyan')} {paint(f'({short_path(workspace)})', 'dim')}")
    return 0


def _from_stdin() -> str:
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise UsageError(f"A note may have {MAX_BYTES:,} bytes; this is longer.")
    return data.decode("utf-8", "replace")
