"""Read the conversations of an export one at a time, in constant memory.

The path is a `.json` file, the `.zip` that a service sends, or the folder it was unpacked to. Each
element of the JSON array in `conversations.json` is parsed on its own, so that memory use depends
on the longest conversation. ChatGPT splits large exports into `conversations-000.json` and so on. A
zip is read in place; one with an unreasonable compression ratio is refused."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterator
from typing import IO, Any

from clawmark.model.errors import ClawmarkError

NAME = "conversations.json"
_PART = re.compile(r"conversations(-[0-9]+)?\.json")
MOST_BYTES = 4 * 1024 * 1024 * 1024
MOST_GROWTH = 200
"""Compression ratio above which a zip is refused; text has 10 to 20."""
LONGEST_ELEMENT = 256 * 1024 * 1024
_BLOCK = 1024 * 1024
_STRUCTURE = re.compile(rb'["\[\]{}]')
_STRING_END = re.compile(rb'["\\]')


class ImportFailed(ClawmarkError):
    """Raised when a source cannot be read."""

    exit_code = 2


def conversations(path: str) -> Iterator[Any]:
    """Yield the conversations of an export; raises ImportFailed at an invalid one."""
    try:
        for part in _in_folder(path) if os.path.isdir(path) else [path]:
            with open(part, "rb") as file:
                if file.read(4) == b"PK\x03\x04":
                    yield from _in_zip(part)
                else:
                    file.seek(0)
                    yield from elements(file, part)
    except OSError as error:
        raise ImportFailed(
            f"{path} cannot be read: {(error.strerror or str(error)).lower()}.",
            hint=f"Name the export's zip, its folder, or the {NAME} in it.",
        ) from error


def _in_folder(path: str) -> list[str]:
    """Return the files of an unpacked export in order; the usual name if there are none."""
    names = sorted(filter(_PART.fullmatch, os.listdir(path)), key=_order)
    return [os.path.join(path, name) for name in names or [NAME]]


def _order(name: str) -> tuple[int, int, str]:
    """Sort by depth, then part 2 before part 10."""
    return name.count("/"), len(name), name


def _in_zip(path: str) -> Iterator[Any]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.infolist()
            found = [info for info in names if _PART.fullmatch(os.path.basename(info.filename))]
            if not found:
                raise ImportFailed(
                    f"There is no {NAME} in {path}.", hint="Name the zip as the service sent it."
                )
            folder = os.path.dirname(min((info.filename for info in found), key=_order))
            for info in sorted(found, key=lambda one: _order(one.filename)):
                if os.path.dirname(info.filename) != folder:
                    continue  # a copy in a subfolder
                if info.file_size > min(MOST_BYTES, MOST_GROWTH * max(info.compress_size, 1)):
                    raise ImportFailed(
                        f"{NAME} in {path} would expand to {info.file_size:,} bytes; no export "
                        f"does."
                    )
                with archive.open(info) as file:
                    yield from elements(file, path)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise ImportFailed(
            f"{path} is a damaged zip: {error}.", hint="Download the export again."
        ) from error


def elements(file: IO[bytes], path: str) -> Iterator[Any]:
    """Yield the elements of a JSON array, read block by block."""
    first = file.read(_BLOCK).removeprefix(b"\xef\xbb\xbf").lstrip()
    if not first.startswith(b"["):
        raise ImportFailed(
            f"{path} does not hold a list of conversations.",
            hint=f"It should be the export's {NAME}.",
        )
    cutter, block, read = _Cutter(), first[1:], len(first)
    while not cutter.is_done:
        for data in cutter.cut(block):
            yield _parsed(data, path)
        if cutter.is_done:
            return
        block = file.read(_BLOCK)
        read += len(block)
        if not block or read > MOST_BYTES or cutter.waiting > LONGEST_ELEMENT:
            raise ImportFailed(
                f"{path} ends in the middle of a conversation.", hint="Download the export again."
            )


class _Cutter:
    """Splits the content of a JSON array into its objects, in linear time."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._at = 0
        self._depth = 0
        self._in_string = False
        self.is_done = False

    @property
    def waiting(self) -> int:
        return len(self._held)

    def cut(self, block: bytes) -> Iterator[bytes]:
        self._held += block
        while not self.is_done:
            match = (_STRING_END if self._in_string else _STRUCTURE).search(self._held, self._at)
            if match is None:
                self._at = len(self._held)
                return
            sign = match[0]
            if sign == b"\\":
                if match.end() >= len(self._held):  # the escaped character is in the next block
                    self._at = match.start()
                    return
                self._at = match.end() + 1
                continue
            self._at = match.end()
            if sign == b'"':
                self._in_string = not self._in_string
            elif sign in (b"[", b"{"):
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth < 0:
                    self.is_done = True
                elif self._depth == 0:
                    data = bytes(self._held[: self._at]).lstrip(b" \t\r\n,")
                    del self._held[: self._at]
                    self._at = 0
                    yield data


def _parsed(data: bytes, path: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ImportFailed(
            f"{path} is not valid JSON: {error}.", hint="Download the export again."
        ) from error
