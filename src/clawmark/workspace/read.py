"""Read memory files as text, with the line numbers of the file.

Lines end at `\\n` only (as editors and citations count them), and a `\\r` before it is dropped.
Nothing is cut inside a character. Bytes that are not UTF-8 become U+FFFD, so that one bad byte does
not hide a file.
"""

import os
import unicodedata
from hashlib import sha256

from clawmark.model.documents import Document, Excerpt
from clawmark.model.errors import NotText, PathDenied
from clawmark.model.values import FileState, is_media
from clawmark.workspace.guard import (
    MAX_FILE_BYTES,
    Folder,
    file_state,
    folder_beneath,
    open_beneath,
    shown,
    split_relative,
    unreadable,
)
from clawmark.workspace.places import Place

WIDE_MARKS = (
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
"""Byte order marks; the UTF-32 ones first, because one of them starts with one of UTF-16."""

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
"""First bytes of formats that get renamed by accident, and that no text starts with."""
SNIFFED_BYTES = 512
"""How much of a file is read to find out its type."""
_BINARY_SAMPLE = 64 * 1024
_BINARY_MINIMUM = 1024
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\x0b\x0c\r\x1b")) + b"\x7f"
_SUSPICIOUS = _CONTROLS + bytes(range(128, 256))


# --- images and audio ---


def media_type(head: bytes) -> str:
    """Return the MIME type of a PNG, JPEG, MP3 or WAV file by its first bytes; empty for others."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith(b"RIFF") and head[8:12] == b"WAVE":
        return "audio/wav"
    return "audio/mpeg" if head.startswith(b"ID3") or _is_mp3_frame(head) else ""


def _is_mp3_frame(head: bytes) -> bool:
    """Whether bytes begin with the header of an MPEG frame of layer 3."""
    if len(head) < 3 or head[0] != 0xFF or head[1] & 0xE6 != 0xE2 or head[1] & 0x18 == 0x08:
        return False
    return head[2] & 0xF0 not in (0x00, 0xF0) and head[2] & 0x0C != 0x0C


def describe_media(data: bytes, size: int, path: str) -> Excerpt:
    """Return one sentence about an image or audio file instead of its bytes."""
    mime = media_type(data[:SNIFFED_BYTES])
    kind = {"image": "an image", "audio": "an audio file"}.get(mime.partition("/")[0], "a file")
    about = f"{mime}, {size:,} bytes" if mime else f"{size:,} bytes of an unknown type"
    text = f"{shown(path)} is {kind} ({about}); open it with another program."
    return Excerpt(
        path=path,
        text=text,
        start=1,
        lines=1,
        total_lines=1,
        truncated=False,
        next_start=None,
        mime=mime or "application/octet-stream",
    )


# --- bytes to text ---


def decode(data: bytes, path: str) -> str:
    """Decode a memory file: lines end with `\\n`, no byte order mark, no NUL; NotText if binary."""
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
    """Raise NotText for a known binary format, and if more than a third is neither text nor UTF-8.

    Below one kibibyte only a signature counts: a note may contain a pasted control sequence."""
    if not data.startswith(BINARY_SIGNATURES):
        sample = data[:_BINARY_SAMPLE]
        if len(data) < _BINARY_MINIMUM or _without_mark(sample)[1] != "utf-8":
            return
        if _count(sample, _SUSPICIOUS) * 3 <= len(sample):
            return  # a quick check: it holds even if all of these are undecodable
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


# --- files ---


def read_all(fd: int, path: str, limit: int = MAX_FILE_BYTES) -> bytes:
    """Read an opened file to its end; PathDenied if it has grown beyond the limit."""
    blocks = []
    left = limit + 1
    try:
        while left > 0 and (block := os.read(fd, min(left, 1 << 16))):
            blocks.append(block)
            left -= len(block)
    except OSError as error:
        raise unreadable(path, error) from error
    if left <= 0:
        raise PathDenied(
            f"{shown(path)} has more than {limit:,} bytes.", path=path, rule="too-large"
        )
    return b"".join(blocks)


def read_document(root: Folder, relative: str, path: str, anchor: int = 0) -> Document:
    """Read and decode a whole file.

    The state is taken first: if the file changes while it is read, the next scan sees another
    state and the file is read again."""
    fd = open_beneath(root, relative, path, anchor)
    try:
        info = os.fstat(fd)
        data = read_all(fd, path)
    finally:
        os.close(fd)
    state = file_state(path, "memory", info)
    return Document(state, decode(data, path), sha256(data).hexdigest())


def read_media(
    root: Folder, relative: str, path: str, anchor: int, limit: int
) -> tuple[FileState, bytes]:
    """Read the bytes of an image or audio file, and the state it had before."""
    fd = open_beneath(root, relative, path, anchor)
    try:
        info = os.fstat(fd)
        return file_state(path, "memory", info), read_all(fd, path, limit)
    finally:
        os.close(fd)


def read_description(root: Folder, relative: str, path: str, anchor: int = 0) -> Excerpt:
    """Describe an image or audio file in one sentence."""
    fd = open_beneath(root, relative, path, anchor)
    try:
        return describe_media(os.read(fd, SNIFFED_BYTES), os.fstat(fd).st_size, path)
    except OSError as error:
        raise unreadable(path, error) from error
    finally:
        os.close(fd)


def read_bytes(root: Folder, relative: str, path: str, anchor: int = 0) -> bytes:
    """Read the bytes of the file at `relative`; FileNotFoundError if it does not exist."""
    fd = open_beneath(root, relative, path, anchor)
    try:
        return read_all(fd, path)
    finally:
        os.close(fd)


def find_equivalent(root: Folder, relative: str, anchor: int = 0) -> str | None:
    """Find the only file whose path is the same in another Unicode normal form, if there is one."""
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


# --- excerpts ---


def read_place(
    root: Folder, place: Place, start: int, lines: int | None, max_lines: int, max_chars: int
) -> Excerpt:
    """Read some lines of a located file, also if its name is spelled in another Unicode form."""
    try:
        if is_media(place.relative):
            return read_description(root, place.relative, place.path, place.anchor)
        data = read_bytes(root, place.relative, place.path, place.anchor)
        return excerpt(data, place.path, start, lines, max_lines, max_chars)
    except FileNotFoundError:
        relative = find_equivalent(root, place.relative, place.anchor)
    if relative is not None:
        path = place.path[: len(place.path) - len(place.relative)] + relative
        data = read_bytes(root, relative, path, place.anchor)
        return excerpt(data, path, start, lines, max_lines, max_chars)
    odd = next((c for c in place.path if c in "*?[\\" or not (c.isprintable() or c == "\xa0")), "")
    if odd:
        what = f"There is no file called {shown(place.path)}, and patterns are not expanded."
        raise PathDenied(what, path=place.path, rule="bad-name", hint="Name one file.")
    return absent(place.path, start)


def absent(path: str, start: int) -> Excerpt:
    """Return the excerpt of a file that does not exist."""
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
    """Return `lines` lines from `start` on, or `max_lines` if `lines` is not given.

    Both are limited by `max_chars`. An explicit `lines` may exceed `max_lines`, so that a cited
    passage of many short lines is read as a whole. The empty piece after the last line end is only
    returned if `lines` includes it, because chunks may count it."""
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
    """Decode up to `count` lines from line `start` on, but not much more than `max_chars`."""
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
    # At most four bytes per character, and two more so that the last one kept is never cut.
    block = body[at : min(end, at + 4 * (max_chars + 2))]
    text = block.decode("utf-8", "replace").replace("\0", "\ufffd")
    return [line.removesuffix("\r") for line in text.split("\n")]


def _fit(pieces: list[str], max_chars: int) -> tuple[str, int]:
    """Join the lines that fit and count them; a first line that is too long is cut."""
    size = -1
    for taken, piece in enumerate(pieces):
        size += len(piece) + 1
        if size > max_chars:
            return ("\n".join(pieces[:taken]), taken) if taken else (piece[:max_chars], 1)
    return "\n".join(pieces), len(pieces)
