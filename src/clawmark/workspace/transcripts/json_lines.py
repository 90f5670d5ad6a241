"""Read the lines of a file of any size with their numbers and byte offsets.

Files are read in blocks by position, so only one line and one block are in memory, and several
readers can share a descriptor."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import NamedTuple

from clawmark.model.errors import WorkspaceError
from clawmark.workspace.guard import reason_of

LONGEST_LINE = 16 << 20
"""Bytes. Longer lines are skipped; a message has about a thousandth of this."""
BLOCK = 256 << 10


class Line(NamedTuple):
    """One line of a file."""

    number: int
    start: int
    """Byte offset."""
    end: int
    """Byte offset of the next line."""
    data: bytes | None
    """Without the line end; None if the line is too long."""
    is_whole: bool
    """Whether the line has a line end; without one it may still be being written."""


def read_lines(fd: int, start: int, number: int, size: int) -> Iterator[Line]:
    """Yield the lines from byte `start` to byte `size`; `number` is the number of the first."""
    begun, held, pieces = start, 0, list[bytes]()
    at = start
    while at < size:
        block = read_at(fd, at, min(BLOCK, size - at))
        if not block:
            break
        from_here = 0
        while (newline := block.find(b"\n", from_here)) >= 0:
            held += newline - from_here
            pieces.append(block[from_here:newline])
            from_here = newline + 1
            data = b"".join(pieces) if held <= LONGEST_LINE else None
            yield Line(number=number, start=begun, end=at + from_here, data=data, is_whole=True)
            begun, held, number = at + from_here, 0, number + 1
            pieces.clear()
        held += len(block) - from_here
        if held <= LONGEST_LINE:
            pieces.append(block[from_here:])
        else:
            pieces.clear()
        at += len(block)
    if at > begun:
        yield Line(
            number=number,
            start=begun,
            end=at,
            data=b"".join(pieces) if held <= LONGEST_LINE else None,
            is_whole=False,
        )


def count_lines(fd: int, start: int, size: int) -> int:
    """Count the line ends between two byte offsets."""
    count = 0
    while start < size and (block := read_at(fd, start, min(BLOCK, size - start))):
        count += block.count(b"\n")
        start += len(block)
    return count


def read_at(fd: int, offset: int, count: int) -> bytes:
    """Read `count` bytes at an offset; fewer at the end of the file."""
    try:
        if sys.platform != "win32" and hasattr(os, "pread"):
            return os.pread(fd, count, offset)
        os.lseek(fd, offset, os.SEEK_SET)
        return os.read(fd, count)
    except OSError as error:
        raise WorkspaceError(
            f"A transcript cannot be read: {reason_of(error)}.",
            hint="Check its permissions and its disk.",
        ) from error


def find_line(fd: int, number: int, size: int) -> int | None:
    """Return the byte offset of a line, counted from 1; None if the file has fewer lines."""
    at, left = 0, number - 1
    while left > 0 and at < size:
        block = read_at(fd, at, min(BLOCK, size - at))
        count = block.count(b"\n")
        if not block:
            return None
        if count < left:
            at, left = at + len(block), left - count
            continue
        within = 0
        for _ in range(left):
            within = block.index(b"\n", within) + 1
        at, left = at + within, 0
    return at if left <= 0 and at < size else None
