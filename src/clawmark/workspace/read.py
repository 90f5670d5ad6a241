"""Memory files as text, with the line numbers of the file.

In: an opened root and a path below it. Out: a decoded `Document`, or an `Excerpt` of some lines.
Lines end at `\\n` only (as editors and citations count them), one `\\r` before it is dropped, and
nothing is ever cut inside a character. Bytes that are not UTF-8 become U+FFFD, so that one bad byte
does not hide a file. Which path is meant is left to `places.py`, opening to `guard.py`."""

import hashlib
import os
import unicodedata
from typing import NamedTuple

from clawmark.model.documents import Document, Excerpt
from clawmark.model.errors import NotText, PathDenied
from clawmark.model.values import FileState
from clawmark.workspace.guard import (
    MAX_FILE_BYTES,
    Folder,
    changed_ns,
    folder_beneath,
    open_beneath,
    shown,
    split_relative,
    unreadable,
)

WIDE_MARKS = (
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
"""Byte order marks; the four-byte ones first, because the first of them begins with a two-byte one.
"""

BINARY_SIGNATURES = (
    b"\x89PNG\r\n",
    b"SQLite format 3\0",
    b"PK\x03\x04",
    b"\x7fELF",
    b"\x1f\x8b\x08",
    b"\xff\xd8\xff",
    b"7z\xbc\xaf",
    b"\xcf\xfa\xed\xfe",
)
"""Of formats that people rename by accident; only such as no text begins with."""
_BINARY_SAMPLE = 64 * 1024
_BINARY_MINIMUM = 1024
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\x0b\x0c\r\x1b")) + b"\x7f"
_SUSPICIOUS = _CONTROLS + bytes(range(128, 256))


class Citation(NamedTuple):
    """A path with the lines a citation named; `lines` is None when it named none."""

    path: str
    start: int
    lines: int | None


def parse_citation(text: str) -> Citation:
    """`memory/x.md#L3-L9` as a path and its lines; a name that only looks like one (`a#L1-L2.md`)
    stays a path.
    """
    path, mark, span = text.rpartition("#L")
    first, dash, last = span.partition("-")
    last = last.removeprefix("L") if dash else first
    numbers = first + last
    if (
        not mark
        or not path
        or not (first and last and numbers.isascii() and numbers.isdigit() and len(numbers) < 20)
    ):
        return Citation(text, 1, None)
    start = max(1, int(first))
    return Citation(path, start, max(1, int(last) - start + 1))


# --- bytes to text -----------------------------------------------------------------------------------------------


def decode(data: bytes, path: str) -> str:
    """The text of a memory file: lines joined by `\\n`, no byte order mark, no NUL; binary data is
    a WorkspaceError.
    """
    _refuse_binary(data, path)
    return _decode_lines(*_without_mark(data))


def _without_mark(data: bytes) -> tuple[bytes, str]:
    for mark, encoding in WIDE_MARKS:
        if data.startswith(mark):
            return data[len(mark) :], encoding
    while data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    return data, "utf-8"


def _decode_lines(data: bytes, encoding: str) -> str:
    text = data.decode(encoding, "replace")
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    if "\r" in text:
        text = text.replace("\r\n", "\n").removesuffix("\r")
    return text


def _refuse_binary(data: bytes, path: str) -> None:
    """Binary is what begins like a known format, or is by more than a third neither text nor UTF-8.

    Below one kibibyte only a signature counts: a short note with a pasted control sequence is still
    a note."""
    if not data.startswith(BINARY_SIGNATURES):
        sample = data[:_BINARY_SAMPLE]
        if len(data) < _BINARY_MINIMUM or _without_mark(sample)[1] != "utf-8":
            return
        if _count(sample, _SUSPICIOUS) * 3 <= len(sample):
            return  # even if nothing of it could be decoded
        controls = _count(sample, _CONTROLS)
        if (controls + _count_undecodable(sample)) * 3 <= len(sample):
            return
        if not controls:
            raise NotText(
                f"{shown(path)} is not UTF-8 text.", hint="Save it as UTF-8 to have it indexed."
            )
    raise NotText(f"{shown(path)} looks binary.", hint="Move it out of the memory folder.")


def _count(sample: bytes, among: bytes) -> int:
    return len(sample) - len(sample.translate(None, among))


def _count_undecodable(sample: bytes) -> int:
    try:
        sample.decode()
    except UnicodeDecodeError:
        return sample.decode("utf-8", "replace").count("\ufffd")
    return 0


# --- files -------------------------------------------------------------------------------------------------------


def read_all(fd: int, path: str) -> bytes:
    """Every byte of an opened file, up to the limit; a file that grew past it meanwhile is refused."""
    blocks = []
    left = MAX_FILE_BYTES + 1
    try:
        while left > 0 and (block := os.read(fd, min(left, 1 << 16))):
            blocks.append(block)
            left -= len(block)
    except OSError as error:
        raise unreadable(path, error) from error
    if left <= 0:
        raise PathDenied(
            f"{shown(path)} has more than {MAX_FILE_BYTES:,} bytes.", path=path, rule="too-large"
        )
    return b"".join(blocks)


def read_document(root: Folder, relative: str, path: str, anchor: int = 0) -> Document:
    """The whole file, decoded; its state is taken from the same descriptor before the first byte is
    read.

    A file that changes while it is read thus keeps an older state than its text, and the next scan
    reads it again."""
    fd = open_beneath(root, relative, path, anchor)
    try:
        info = os.fstat(fd)
        data = read_all(fd, path)
    finally:
        os.close(fd)
    state = FileState(
        path=path,
        source="memory",
        size=info.st_size,
        mtime_ns=changed_ns(info),
        inode=info.st_ino,
        device=info.st_dev,
    )
    return Document(state, decode(data, path), hashlib.sha256(data).hexdigest())


def read_bytes(root: Folder, relative: str, path: str, anchor: int = 0) -> bytes:
    """The bytes of the file at `relative`; FileNotFoundError when there is none."""
    fd = open_beneath(root, relative, path, anchor)
    try:
        return read_all(fd, path)
    finally:
        os.close(fd)


def find_equivalent(root: Folder, relative: str, anchor: int = 0) -> str | None:
    """The one file whose path is the same text in another Unicode normal form, if there is exactly
    one.
    """
    if relative.isascii():
        return None

    found: list[str] = []
    parts = split_relative(relative)
    for part in parts:
        wanted = unicodedata.normalize("NFC", part)
        try:
            with (
                folder_beneath(root, found, relative, anchor) as folder,
                folder.listing() as entries,
            ):
                names = [
                    e.name
                    for e in entries
                    if e.name == part or unicodedata.normalize("NFC", e.name) == wanted
                ]
        except OSError:
            return None
        names = [part] if part in names else names
        if len(names) != 1:
            return None
        found.append(names[0])
    return "/".join(found)


# --- excerpts ----------------------------------------------------------------------------------------------------


def absent(path: str, start: int) -> Excerpt:
    """What reading a file that is not there gives."""
    return Excerpt(
        path=path,
        text="",
        start=start,
        lines=0,
        total_lines=0,
        truncated=False,
        next_start=None,
        missing=True,
    )


def excerpt(
    data: bytes, path: str, start: int, lines: int | None, max_lines: int, max_chars: int
) -> Excerpt:
    """Lines from `start` on: `lines` of them, or `max_lines` when no number was asked for, within
    `max_chars`.

    An explicit `lines` may exceed `max_lines` (a cited passage of many short lines is read back
    whole); the characters bound it. The empty piece after a final line end is returned only when
    `lines` reaches it: chunks may count it."""
    _refuse_binary(data, path)
    body, encoding = _without_mark(data)
    if encoding != "utf-8":
        body = _decode_lines(body, encoding).encode()
    total = body.count(b"\n") + (not body.endswith(b"\n") and bool(body))
    start = max(1, start)
    asked = lines is not None and lines > 0
    wanted = lines if lines is not None and asked else max_lines
    pieces = _pieces(body, start, min(wanted, max_chars + 1), max_chars)
    if not asked and pieces and start + len(pieces) - 1 > total:
        pieces.pop()
    text, taken = _fit(pieces, max_chars)
    rest = start + taken
    more = bool(pieces) and rest <= total
    cut = taken == 1 and len(text) < len(pieces[0])
    is_short = more and (not asked or taken < wanted)
    return Excerpt(
        path=path,
        text=text,
        start=start,
        lines=taken,
        total_lines=total,
        truncated=is_short or cut,
        next_start=rest if more else None,
    )


def _pieces(body: bytes, start: int, count: int, max_chars: int) -> list[str]:
    """Up to `count` decoded lines from line `start` on; what surely exceeds `max_chars` is not even
    decoded.
    """
    at = 0
    for _ in range(start - 1):
        at = body.find(b"\n", at) + 1
        if not at:
            return []
    if not body or count < 1:
        return []
    end = at
    for _ in range(count):
        end = body.find(b"\n", end) + 1
        if not end:
            break
    end = end - 1 if end else len(body)
    # A character has at most four bytes; two more characters, so that the cut never falls inside
    # the last one kept.
    block = body[at : min(end, at + 4 * (max_chars + 2))]
    text = block.decode("utf-8", "replace").replace("\0", "\ufffd")
    return [line.removesuffix("\r") for line in text.split("\n")]


def _fit(pieces: list[str], max_chars: int) -> tuple[str, int]:
    """The lines that fit, joined; a first line that alone is too long is cut."""
    size = -1
    for taken, piece in enumerate(pieces):
        size += len(piece) + 1
        if size > max_chars:
            return ("\n".join(pieces[:taken]), taken) if taken else (piece[:max_chars], 1)
    return "\n".join(pieces), len(pieces)
