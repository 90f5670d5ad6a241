"""What was said in a session, ready to be kept: read from the end of its transcript, without
commands and secrets.

In: a transcript and how much of it is wanted. Out: messages, oldest first. A long transcript is
read backwards and only as far as needed. Where a secret stood there are words that say so: a note
is a memory file, and no mask is ever written into one. Which lines are messages is decided by
`text.transcript`."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from typing import BinaryIO

from clawmark.text.secrets.redact import Redactor, replace_masks
from clawmark.text.transcripts.records import Said, read_said

LEFT_OUT = "(a secret was left out)"

MOST_READ = 32 << 20
"""Bytes of a transcript that are looked at. What is said in more than this fits into no model."""
_BLOCK = 256 << 10
_LONGEST_LINE = 8 << 20
"""A longer line is a picture or a tool's output."""

_COMMAND = re.compile(r"/([a-z][a-z0-9_-]{0,30})(?=\s|\Z)")
_COMMANDS = """
abort activation agents approve bash btw clear commands compact config context debug exec exit export flush focus help kill
memory model models new prompt queue quit reasoning reset restart resume send session sessions skill status steer stop
subagents tell think tools tts unfocus usage verbose whoami
"""
"""Words that are commands with something behind them; with nothing behind it, every `/word` is one.
"""


def without_secrets(text: str, redactor: Redactor) -> str:
    """The text with plain words in place of secrets, and of masks that others left there."""
    return replace_masks(redactor.clean(text), LEFT_OUT)


def is_command(text: str) -> bool:
    """Whether a message is a command to the host; a path that stands at the beginning is none."""
    found = _COMMAND.match(text)
    return found is not None and (found[1] in _COMMANDS.split() or found.end() == len(text))


def transcript_size(path: str) -> int:
    """How long a transcript is; 0 when there is none."""
    try:
        return os.stat(path).st_size if path else 0
    except OSError:
        return 0


def last_said(
    path: str,
    redactor: Redactor,
    *,
    since: int = 0,
    most_messages: int = 10_000,
    most_chars: int = 1_000_000,
) -> list[Said]:
    """The last messages of a transcript that begin at byte `since` or later; the first of them may
    be cut.
    """
    found: list[Said] = []
    left = most_chars
    for line in lines_backwards(path, since):
        if len(found) >= most_messages or left <= 0:
            break
        said = read_said(line, 0)
        if said is None or (said.speaker == "user" and is_command(said.text)):
            continue
        # Cleaned before it is cut: half a secret has no shape any more.
        text = without_secrets(said.text, redactor).strip()
        if len(text) > left:
            text = f"… {text[-left:]}"
        left -= len(text)
        if text:
            found.append(said._replace(text=text))
    return found[::-1]


def last_line(path: str) -> str:
    """The last line of a transcript that is not empty; empty when there is none."""
    return next((line for line in lines_backwards(path, 0) if line.strip()), "")


def lines_backwards(path: str, since: int) -> Iterator[str]:
    """The lines of a file from the last to the first; one that is absent, a link or no file has
    none.
    """
    try:
        with open(path, "rb", opener=_open_plainly) as file:
            for line in _raw_lines(file, since):
                if len(line) <= _LONGEST_LINE:
                    yield line.decode("utf-8", "replace")
    except OSError:
        return


def _open_plainly(path: str, flags: int) -> int:
    """A descriptor of a regular file: nothing leads elsewhere, and a pipe does not keep us waiting."""
    more = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(path, flags | more)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is no file")
    return descriptor


def _raw_lines(file: BinaryIO, since: int) -> Iterator[bytes]:
    end = file.seek(0, os.SEEK_END)
    since = (
        _line_start(file, since) if since <= end else 0
    )  # when it is shorter, it is another file
    stop = max(since, end - MOST_READ)
    rest: list[bytes] = []  # the pieces of a line whose beginning is not read yet, last piece first
    while end > stop:
        start = max(stop, end - _BLOCK)
        file.seek(start)
        *lines, last = file.read(end - start).split(b"\n")[::-1]
        end = start
        if not lines:
            rest.append(last)
            continue
        yield b"".join([lines[0], *rest[::-1]])
        yield from lines[1:]
        rest = [last]
    if stop == since and rest:
        yield b"".join(rest[::-1])


def _line_start(file: BinaryIO, place: int) -> int:
    """Where the line begins that a place lies in: whoever noted the place may have seen half of
    that line.
    """
    start = max(0, place - _LONGEST_LINE)
    file.seek(start)
    return start + file.read(place - start).rfind(b"\n") + 1
