"""Find the lines of a journal that have an entry, without reading all of it.

A file next to the journal covers its beginning: a line of JSON, and then a sorted list of hashes
with the offsets of their lines. What was added since then, at most `MOST_UNCOVERED` bytes, is
searched. The file is derived from the journal and can be deleted at any time."""

import contextlib
import json
import mmap
import os
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from clawmark.history.record_lines import is_damaged, is_open
from clawmark.system import shared_json
from clawmark.system.private_files import open_private

VERSION = 2
HASH_DIGITS = 24
_HASH_BYTES = HASH_DIGITS // 2
_ROW_BYTES = _HASH_BYTES + 8
MOST_UNCOVERED = 256 << 10
_HASH = re.compile(rb'"([0-9a-f]{%d})"' % HASH_DIGITS)


class Covered(NamedTuple):
    """The part of a journal that the index covers."""

    size: int = 0
    """In bytes, from the beginning of the journal."""
    damaged: int = 0
    """Lines that are not records."""
    open: dict[str, int] = {}  # noqa: RUF012  # never changed
    """The id of each record without an outcome, and the offset of its line."""
    rows: bytes = b""
    """The hashes and offsets, sorted."""


class EntryIndex:
    """The index of one journal. Methods take the open journal, mapped into memory."""

    def __init__(self, journal: str) -> None:
        self.path = f"{journal}.index"

    def offsets(
        self, journal: int, data: mmap.mmap, hashes: Collection[str]
    ) -> dict[str, list[int]]:
        """Return the offsets of the lines that have each hash, in order; `journal` is the open
        file."""
        covered = self.covered(journal, data)
        found = {one: list(_rows_of(covered.rows, bytes.fromhex(one))) for one in hashes}
        for match in _HASH.finditer(data, covered.size):
            places = found.get(match[1].decode())
            if places is not None:
                start = data.rfind(b"\n", 0, match.start()) + 1
                if start not in places:
                    places.append(start)
        return found

    def covered(self, journal: int, data: mmap.mmap) -> Covered:
        """Return the covered part, which is first extended if much was added since."""
        covered = self._load(journal, data)
        if len(data) - covered.size <= MOST_UNCOVERED:
            return covered
        covered = extended(covered, data)
        with contextlib.suppress(OSError):  # without the index, all of the journal is searched
            self._save(journal, covered)
        return covered

    def _load(self, journal: int, data: mmap.mmap) -> Covered:
        try:
            with open(open_private(self.path, os.O_RDONLY), "rb") as file:
                head = json.loads(file.readline())
                rows = file.read()
            size, damaged, open_ = head["size"], head["damaged"], dict(head["open"])
            is_valid = (
                head["version"] == VERSION
                and head["inode"] == os.fstat(journal).st_ino
                and 0 < size <= len(data)
                and data[size - 1] == ord("\n")
                and len(rows) == head["rows"] * _ROW_BYTES
            )
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return Covered()
        if not is_valid:
            return Covered()
        return Covered(size=size, damaged=damaged, open=open_, rows=rows)

    def _save(self, journal: int, covered: Covered) -> None:
        head = {
            "version": VERSION,
            "inode": os.fstat(journal).st_ino,
            "size": covered.size,
            "damaged": covered.damaged,
            "open": covered.open,
            "rows": len(covered.rows) // _ROW_BYTES,
        }
        with shared_json.locked(self.path, 0.0) as is_locked:
            if not is_locked:
                return
            new = f"{self.path}.new"
            with open(open_private(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
                file.write(json.dumps(head, separators=(",", ":")).encode() + b"\n")
                file.write(covered.rows)
            os.replace(new, self.path)


def extended(covered: Covered, data: mmap.mmap) -> Covered:
    """Return the covered part with all complete lines after it."""
    end = data.rfind(b"\n") + 1
    damaged, open_ = covered.damaged, dict(covered.open)
    rows = [
        covered.rows[start : start + _ROW_BYTES]
        for start in range(0, len(covered.rows), _ROW_BYTES)
    ]
    for offset, values in lines_from(data, covered.size, end):
        for outcome in ("finished", "dropped"):
            open_.pop(str(values.get(outcome)), None)
        if is_damaged(values):
            damaged += 1
        elif is_open(values):
            open_[str(values["id"])] = offset
        rows += [
            bytes.fromhex(one) + offset.to_bytes(8, "big")
            for one in hashes_in(values.get("entries"))
        ]
    rows.sort()
    return Covered(size=end, damaged=damaged, open=open_, rows=b"".join(rows))


def lines_from(data: mmap.mmap, start: int, end: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the offset and the object of each line; an empty object for a damaged line."""
    while start < end:
        stop = data.find(b"\n", start, end)
        stop = end if stop < 0 else stop
        yield start, parse_object(data[start:stop])
        start = stop + 1


def parse_object(line: bytes) -> dict[str, Any]:
    """Return the object of a line; an empty one if the line is damaged."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def hashes_in(entries: object) -> Iterable[str]:
    """Yield the entries of a record that are hashes."""
    for one in entries if isinstance(entries, list) else ():
        if isinstance(one, str) and _HASH.fullmatch(f'"{one}"'.encode("ascii", "replace")):
            yield one


def _rows_of(rows: bytes, wanted: bytes) -> Iterator[int]:
    """Yield the offsets of a hash, by bisection."""
    numbers = range(0, len(rows), _ROW_BYTES)
    start = _ROW_BYTES * bisect_left(numbers, wanted, key=lambda at: rows[at : at + _HASH_BYTES])
    while rows[start : start + _HASH_BYTES] == wanted:
        yield int.from_bytes(rows[start + _HASH_BYTES : start + _ROW_BYTES], "big")
        start += _ROW_BYTES
