"""`clawmark get`: print lines of a memory file by path or citation."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from clawmark.cli.arguments import count
from clawmark.cli.layout import plural, short_path
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import emit, note, place, plain, say
from clawmark.model.errors import FileMissing

EXAMPLES = """\
examples:
  clawmark get MEMORY.md
  clawmark get memory/2026-11-15.md#L12-L28
  clawmark get memory/2026-11-15.md --from 12 --lines 40
  clawmark get notes:projects/ferry.md    # a file in an added folder"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="a memory file, or a citation of lines in it")
    parser.add_argument(
        "--from", dest="start", type=count(1, 10**9), metavar="N", help="the first line"
    )
    parser.add_argument("--lines", type=count(1, 10**9), metavar="N", help="how many lines")


def run(args: Namespace) -> int:
    with open_memory(args) as memory:
        excerpt = memory.read(args.path, start=args.start, lines=args.lines)
        path = memory.absolute_path(excerpt.path)
    if excerpt.missing:
        raise FileMissing(
            f"There is no file {place(excerpt.path)}.", hint=f"It would be {short_path(path)}."
        )
    if args.json:
        body: dict[str, object] = {
            "path": excerpt.path,
            "absolutePath": path,
            "text": excerpt.text,
            "from": excerpt.start,
            "lines": excerpt.lines,
            "totalLines": excerpt.total_lines,
        }
        if excerpt.mime:
            body["mime"] = excerpt.mime
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
        note(f"  clawmark get {path} --from {following}")
    return 0
