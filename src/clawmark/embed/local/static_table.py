"""The file of the static word table: its layout and reading it.

`training.export` makes the file. Layout, little-endian: 8 bytes magic; u32 rows, u32 dims, u32
length of the vocabulary; the vocabulary, UTF-8, one piece per line; u32 per piece, where it starts;
65,536 u16 slots, a hash table by CRC-32 that gives a piece's row (0: empty; collisions go to the
next slot); one factor byte per row; the rows, four bits per number: the low halves of a row's bytes
are its first half. A number is `(bits - 8) * factor`, in a unit that drops out when vectors are
normalised. Rows 0..255 are the single bytes, row 256 + n belongs to piece n."""

# Every cold search runs this file: pathlib would cost more than the work.

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mmap import mmap

SHA256 = "02b880867c250dc019f6b456fb67762441d4713318262f0b1d94388c690b2614"
"""Of the file; any other content is refused, because its vectors are not comparable."""

MAGIC = b"CLAWTAB2"
HEADER = struct.Struct("<8sIII")
SLOTS = 1 << 16
BYTES = 256
"""Rows at the start that stand for single bytes."""
MIDDLE = 8
"""What is added to a number before it is stored."""
WORD_START = "\u2581"
NO_PIECE = -1
"""What `find` gives for a string that is not a piece."""
_LOW = bytes(byte & 15 for byte in range(256))
_HIGH = bytes(byte >> 4 for byte in range(256))


class Table:
    """A table over the bytes of the file, whose hash the caller has checked."""

    def __init__(self, data: bytes | mmap) -> None:
        _, rows, self.dims, length = HEADER.unpack_from(data)
        self._data = data
        self._pieces = rows - BYTES
        self._starts = HEADER.size + length
        self._slots = self._starts + 4 * self._pieces
        self._factors = self._slots + 2 * SLOTS
        self._rows = self._factors + rows
        self.find: Callable[[str], int] = self._probe
        """The row of a piece, or NO_PIECE."""

    def row(self, number: int) -> bytes:
        """A byte for each number: the number plus MIDDLE."""
        start = self._rows + number * self.dims // 2
        halves = self._data[start : start + self.dims // 2]
        return halves.translate(_LOW) + halves.translate(_HIGH)

    def factor(self, number: int) -> int:
        return int(self._data[self._factors + number])

    def prepare(self) -> None:
        """Make `find` fast for many words by a dictionary, which takes 6 ms to build."""
        if self.find == self._probe:
            pieces = self._data[HEADER.size : self._starts - 1].decode().split("\n")
            rows = dict(zip(pieces, range(BYTES, BYTES + self._pieces), strict=True))
            self.find = lambda piece: rows.get(piece, NO_PIECE)

    def _probe(self, piece: str) -> int:
        """Look a piece up in the file's own hash table."""
        name = piece.encode()
        slot = zlib.crc32(name) % SLOTS
        while row := struct.unpack_from("<H", self._data, self._slots + 2 * slot)[0]:
            (start,) = struct.unpack_from("<I", self._data, self._starts + 4 * (row - BYTES))
            if self._data[start : start + len(name) + 1] == name + b"\n":
                return int(row)
            slot = (slot + 1) % SLOTS
        return NO_PIECE


def sha256(data: bytes | mmap) -> str:
    # Imported late: OpenSSL takes 2 ms to load, and most syncs open no weights.
    import hashlib

    return hashlib.sha256(data).hexdigest()
