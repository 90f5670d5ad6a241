"""Read the most recent messages of a transcript from its end.

Only as much of the file is read as needed. Commands to the host are skipped, and secrets are
replaced by words, because the messages may be written into memory files."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from datetime import datetime
from typing import BinaryIO

from clawmark.text.secrets.redact import Redactor
from clawmark.text.transcripts.records import (
    TranscriptMessage,
    parse_line,
    read_message,
    utc_time,
)

MOST_READ = 32 << 20
"""Bytes of a transcript that are read at most; more does not fit into any model."""
_BLOCK = 256 << 10
_LONGEST_LINE = 8 << 20
"""A longer line is an image or the output of a tool."""
_FIRST_BYTES = 1 << 20
"""Bytes at the start of a transcript that are searched for its first timestamp."""

_COMMAND = re.compile(r"/([a-z][a-z0-9_-]{0,30})(?=\s|\Z)")
_COMMANDS = """
abort activation agents approve bash btw clear commands compact config context debug exec exit
export flush focus help kill memory model models new prompt queue quit reasoning reset restart
resume send session sessions skill status steer stop subagents tell think tools tts unfocus usage
verbose whoami
"""
"""Commands that take arguments; without arguments every `/word` is a command."""


def is_command(text: str) -> bool:
    """Check whether a message is a command to the host; a path at its start is not."""
    found = _COMMAND.match(text)
    return found is not None and (found[1] in _COMMANDS.split() or found.end() == len(text))


def transcript_size(path: str) -> int:
    """Return the size of a transcript in bytes; 0 if it does not exist."""
    try:
        return os.stat(path).st_size if path else 0
    except OSError:
        return 0


def recent_messages(
    path: str,
    redactor: Redactor,
    *,
    since: int = 0,
    most_messages: int = 10_000,
    most_chars: int = 1_000_000,
) -> list[TranscriptMessage]:
    """Return the last messages that start at byte `since` or later, oldest first.

    The oldest one may be truncated.
    """
    found: list[TranscriptMessage] = []
    left = most_chars
    for line in lines_backwards(path, since):
        if len(found) >= most_messages or left <= 0:
            break
        message = read_message(line, 0)
        if message is None or (message.role == "user" and is_command(message.text)):
            continue
        # Secrets are removed before truncating: half a secret is not recognised any more.
        text = redactor.remove(message.text).strip()
        if len(text) > left:
            text = f"… {text[-left:]}"
        left -= len(text)
        if text:
            found.append(message._replace(text=text))
    return found[::-1]


def first_time(path: str) -> datetime | None:
    """Return the first timestamp of a transcript; None if there is none near its start."""
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        lines = file.read(_FIRST_BYTES).decode("utf-8", "replace").split("\n")
    times = (utc_time(parse_line(line).get("timestamp")) for line in lines)
    found = next(filter(None, times), "")
    return datetime.fromisoformat(found) if found else None


def last_line(path: str) -> str:
    """Return the last line of a transcript that is not blank; empty if there is none."""
    return next((line for line in lines_backwards(path, 0) if line.strip()), "")


def lines_backwards(path: str, since: int) -> Iterator[str]:
    """Yield the lines of a regular file from the last to the first; nothing if it is not one."""
    try:
        with open(path, "rb", opener=_open_regular) as file:
            for line in _raw_lines(file, since):
                if len(line) <= _LONGEST_LINE:
                    yield line.decode("utf-8", "replace")
    except OSError:
        return


def _open_regular(path: str, flags: int) -> int:
    """Open a regular file without following a link or blocking on a pipe."""
    more = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(path, flags | more)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a regular file")
    return descriptor


def _raw_lines(file: BinaryIO, since: int) -> Iterator[bytes]:
    end = file.seek(0, os.SEEK_END)
    # If the file is shorter than `since`, it is a different file.
    since = _line_start(file, since) if since <= end else 0
    stop = max(since, end - MOST_READ)
    rest: list[bytes] = []  # the pieces of a line whose start has not been read yet, in reverse
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


def _line_start(file: BinaryIO, offset: int) -> int:
    """Return where the line containing `offset` starts: it may have been incomplete before."""
    start = max(0, offset - _LONGEST_LINE)
    file.seek(start)
    return start + file.read(offset - start).rfind(b"\n") + 1
