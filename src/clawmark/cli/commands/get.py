"""`clawmark get`: print lines of a memory file by path or citation."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from clawmark.cli.arguments import count, some_text
from clawmark.cli.layout import plural, short_path
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import emit, note, place, plain, say
from clawmark.memory import Memory
from clawmark.model.errors import FileMissing
from clawmark.model.values import SPACES

EXAMPLES = """\
examples:
  clawmark get MEMORY.md
  clawmark get memory/2026-11-15.md#L12-L28
  clawmark get memory/2026-11-15.md --from 12 --lines 40
  clawmark get notes:projects/ferry.md    # a file in an added folder
  clawmark get spaces/team/2026-11-18.md  # the log of a shared space"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="a memory file, or a citation of lines in it")
    parser.add_argument(
        "--from", dest="start", type=count(1, 10**9), metavar="N", help="the first line"
    )
    parser.add_argument(
        "--as-of", type=some_text, metavar="DAY", help="print the file as it was on this day"
    )
    parser.add_argument("-n", "--lines", type=count(1, 10**9), metavar="N", help="how many lines")


def run(args: Namespace) -> int:
    with open_memory(args) as memory:
        excerpt = memory.read(args.path, start=args.start, lines=args.lines, as_of=args.as_of)
        path = _absolute(memory, excerpt.path)
    if excerpt.note:
        note(f"clawmark: {plain(excerpt.note)}")
    if excerpt.missing and args.as_of:
        raise FileMissing(
            f"There was no file {place(excerpt.path)} on {plain(args.as_of)}.",
            hint="Leave --as-of out to print the file as it is now.",
        )
    if excerpt.missing:
        hint = f"It would be {short_path(path)}." if path else "`clawmark search` finds documents."
        raise FileMissing(f"There is no file {place(excerpt.path)}.", hint=hint)
    if args.json:
        body: dict[str, object] = {
            "path": excerpt.path,
            **({"asOf": args.as_of} if args.as_of else {"absolutePath": path} if path else {}),
            "text": excerpt.text,
            "from": excerpt.start,
            "lines": excerpt.lines,
            "totalLines": excerpt.total_lines,
        }
        if excerpt.mime:
            body["mime"] = excerpt.mime
        if excerpt.note:
            body["note"] = excerpt.note
        if excerpt.truncated:
            body.update(truncated=True, nextFrom=excerpt.next_start)
        emit(body)
        return 0
    if excerpt.text:
        say(plain(excerpt.text))
    if not excerpt.total_lines:
        note(f"clawmark: {place(excerpt.path)} is empty.")
    elif excerpt.start > excerpt.total_lines:
        total = plural(excerpt.total_lines, "line")
        note(f"clawmark: {place(excerpt.path)} has {total}; line {excerpt.start} is past its end.")
    elif excerpt.truncated and excerpt.next_start is not None:
        path, following = place(excerpt.path), excerpt.next_start
        note(f"clawmark: this ends at line {following - 1} of {excerpt.total_lines}; continue with")
        day = f" --as-of {plain(args.as_of)}" if args.as_of else ""
        note(f"  clawmark get {path} --from {following}{day}")
    return 0


def _absolute(memory: Memory, path: str) -> str:
    """Return the path on disk; empty for a document of a shared space, which need not be here."""
    if memory.settings.has_team and path.startswith(SPACES):
        return ""
    return memory.absolute_path(path)
