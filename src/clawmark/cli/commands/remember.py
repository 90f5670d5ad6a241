"""`clawmark remember`: add a note to today's log or another memory file.

Notes are checked like those of agents; `--force` skips the check."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from clawmark.agent.tools.gate import Refusal
from clawmark.cli.arguments import UsageError, some_text
from clawmark.cli.as_json import error_as_json
from clawmark.cli.layout import short_path
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import emit, paint, place, plain, say
from clawmark.memory import Memory
from clawmark.model.errors import ClawmarkError
from clawmark.model.values import citation
from clawmark.text.write_check import check_write
from clawmark.workspace.daily import without_recent_time

MAX_BYTES = 1024 * 1024

EXAMPLES = """\
examples:
  clawmark remember "We chose PostgreSQL for billing"
  clawmark remember --to MEMORY.md "Prefers short answers"
  clawmark remember --space team "The staging database moves on Friday"
  git log -1 --format=%s | clawmark remember -"""


class NoteRefused(ClawmarkError):
    """Raised when the check refuses a note."""

    exit_code = 4


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "text", nargs="+", metavar="TEXT", help="what to remember; - reads standard input"
    )
    parser.add_argument(
        "--to",
        default="",
        metavar="PATH",
        help="MEMORY.md or another memory file (default: today's log)",
    )
    parser.add_argument(
        "--space",
        type=some_text,
        metavar="NAME",
        help="add it to the log of this shared space, for the whole team",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="keep it even if it is a duplicate, contains a secret or looks like noise",
    )


def run(args: Namespace) -> int:
    text = (_from_stdin() if args.text == ["-"] else " ".join(args.text)).strip()
    if not text:
        raise UsageError("There is nothing to remember: the text is empty.")
    if args.space and args.to:
        raise UsageError("--space adds to the log of a space and cannot be combined with --to.")
    with open_memory(args) as memory:
        if args.space:
            return _share(memory, args, text)
        moment = memory.now()
        day = moment.date().isoformat()
        bare = without_recent_time(text, f"{moment:%H:%M}")
        refusal = None if args.force else memory.check_note(bare, to=args.to, day=day)
        if refusal is not None:
            return _refuse(refusal, text, as_json=args.json)
        written = memory.append(text, to=args.to, at=moment)
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
    say(
        f"Remembered in {paint(place(written.citation), 'cyan')} "
        f"{paint(f'({short_path(workspace)})', 'dim')}"
    )
    return 0


def _share(memory: Memory, args: Namespace, text: str) -> int:
    """Add an entry to the log of a shared space."""
    team = memory.team
    refusal = None if args.force else team.check_note(args.space, text)
    if refusal is not None:
        return _refuse(refusal, text, as_json=args.json)
    done = team.append(args.space, text)
    cited = citation(done.path, done.start_line, done.end_line)
    if args.json:
        emit(
            {
                "space": args.space,
                "author": done.author,
                "path": done.path,
                "startLine": done.start_line,
                "endLine": done.end_line,
                "citation": cited,
                "at": done.at,
            }
        )
        return 0
    say(f"Shared in {paint(place(cited), 'cyan')} {paint(f'as {plain(done.author)}', 'dim')}")
    return 0


def _refuse(refusal: Refusal, text: str, *, as_json: bool) -> int:
    """Report why the note was refused and how to keep it anyway."""
    # A redaction mask is refused even with --force: it would replace the secret it stands for.
    is_masked = check_write(text) is not None
    hint = refusal.action if is_masked else f"{refusal.action} To keep it anyway, add --force."
    error = NoteRefused(f"Not remembered. {refusal.message}", hint=hint)
    if not as_json:
        raise error
    emit({"ok": False, "error": {**error_as_json(error), "reason": refusal.reason}})
    return error.exit_code


def _from_stdin() -> str:
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise UsageError(f"A note may have at most {MAX_BYTES:,} bytes.")
    return data.decode("utf-8", "replace")
