"""The file of the static word table: its layout, making it and reading it.

`pack` runs when Clawmark is built: from the table of the `wordllama` package (32,000 token rows of
256 half-precision numbers, and a tokenizer in JSON) it makes one small file that `Table` opens in
milliseconds without numpy. The build runs this module on its own, before the package can be
imported, so it imports the standard library only.

Layout, little-endian: 8 bytes magic; u32 rows, u32 dims, u32 length of the vocabulary; the
vocabulary, UTF-8, one piece per line; u32 per piece, where it starts; 65,536 u16 slots, a hash
table by CRC-32 that gives a piece's row (0: empty; collisions go to the next slot); one factor byte
per row; the rows, one byte per number. A number is `(byte - 128) * factor`, in a unit that drops
out when vectors are normalised. Rows 0..255 are the single bytes, row 256 + n belongs to piece n.
Pieces stand in the order of their ids, which is the order in which merging prefers them."""

# The build and every cold search run this file: pathlib would cost more than the work.

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mmap import mmap

SHA256 = "6b7989cd154420029986644a79a10660e04569e49762b868c5e18b389f4f5ba2"
"""Of the packed file; any other content is refused, because its vectors are not comparable."""

PACKAGE = "wordllama"
VERSION = "0.4.0.post1"
WEIGHTS = (
    "weights/l2_supercat_256.safetensors",
    "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
)
TOKENIZER = (
    "tokenizers/l2_supercat_tokenizer_config.json",
    "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
)
"""The two source files inside the package, each with its pinned SHA-256."""

MAGIC = b"CLAWTAB1"
HEADER = struct.Struct("<8sIII")
SLOTS = 1 << 16
BYTES = 256
"""Rows at the start that stand for single bytes."""
FIRST_PIECE = 259
"""Ids below it in the source are three special tokens and the bytes."""
WORD_START = "\u2581"
NO_PIECE = 1 << 30
"""What `find` gives for a string that is not a piece: the rank of a pair that never merges."""


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
        start = self._rows + number * self.dims
        return self._data[start : start + self.dims]

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


def is_packed(path: str) -> bool:
    """Whether the file exists and is the one of this version."""
    try:
        with open(path, "rb") as file:
            return sha256(file.read()) == SHA256
    except OSError:
        return False


def pack(weights_path: str, tokenizer_path: str, out_path: str) -> str:
    """Make the packed file from the two source files and return its SHA-256; the result is the same
    on every machine.
    """
    data = packed(_source(weights_path, WEIGHTS[1]), _source(tokenizer_path, TOKENIZER[1]))
    os.makedirs(os.path.dirname(out_path), exist_ok=True)
    # Written under another name and renamed, so that an interrupted build leaves no partial file.
    with open(f"{out_path}.new", "wb") as file:
        file.write(data)
    os.replace(f"{out_path}.new", out_path)
    return sha256(data)


def packed(weights: bytes, tokenizer: bytes) -> bytes:
    """The content of the packed file for a safetensors file and its `tokenizer.json`."""
    ids: dict[str, int] = json.loads(tokenizer)["model"]["vocab"]
    kept = sorted(
        (number, piece)
        for piece, number in ids.items()
        if number >= FIRST_PIECE and is_reachable(piece)
    )
    numbers = [ids[f"<0x{byte:02X}>"] for byte in range(BYTES)] + [number for number, _ in kept]
    pieces = [piece.encode() + b"\n" for _, piece in kept]
    starts, slots = _hash_table(pieces)
    matrix, dims = _matrix(weights)
    factors, rows = _quantise(matrix, dims, numbers)
    vocabulary = b"".join(pieces)
    header = HEADER.pack(MAGIC, len(numbers), dims, len(vocabulary))
    return b"".join((header, vocabulary, starts, slots, factors, rows))


def is_reachable(piece: str) -> bool:
    """Whether a word can contain the piece: words are lower case and have no ASCII punctuation but
    `_`.
    """
    body = piece.removeprefix(WORD_START)
    if WORD_START in body or body != body.lower():
        return False
    return all(not char.isascii() or char.isalnum() or char == "_" for char in body)


def _source(path: str, expected: str) -> bytes:
    with open(path, "rb") as file:
        data = file.read()
    if sha256(data) != expected:
        raise ValueError(
            f"{path} is not the file of {PACKAGE} {VERSION} that this version was made for."
        )
    return data


def _matrix(weights: bytes) -> tuple[memoryview, int]:
    """The rows of the only tensor in a safetensors file, still in half precision."""
    (length,) = struct.unpack_from("<Q", weights)
    tensor = json.loads(weights[8 : 8 + length])["embedding.weight"]
    start, end = tensor["data_offsets"]
    return memoryview(weights)[8 + length + start : 8 + length + end], tensor["shape"][1]


def _hash_table(pieces: list[bytes]) -> tuple[bytes, bytes]:
    """Where each piece starts in the file, and the slots that `Table` probes."""
    starts, slots, at = [], [0] * SLOTS, HEADER.size
    for row, piece in enumerate(pieces, BYTES):
        starts.append(at)
        at += len(piece)
        slot = zlib.crc32(piece[:-1]) % SLOTS
        while slots[slot]:
            slot = (slot + 1) % SLOTS
        slots[slot] = row
    return struct.pack(f"<{len(starts)}I", *starts), struct.pack(f"<{SLOTS}H", *slots)


def _quantise(matrix: memoryview, dims: int, numbers: list[int]) -> tuple[bytes, bytes]:
    """One factor and `dims` bytes per row; factors are whole numbers so that sums of rows stay
    exact integers.
    """
    row = struct.Struct(f"<{dims}e")
    values = [row.unpack_from(matrix, number * row.size) for number in numbers]
    peaks = [max(map(abs, vector)) for vector in values]
    unit = max(peaks) / 255
    factors, rows = bytearray(), bytearray()
    for vector, peak in zip(values, peaks, strict=True):
        # Rounded up, so that the largest number of the row still fits into 127 steps.
        factor = min(255, int(peak / unit) + 1)
        step = factor * unit / 127
        factors.append(factor)
        rows += bytes([round(number / step) + 128 for number in vector])
    return bytes(factors), bytes(rows)
