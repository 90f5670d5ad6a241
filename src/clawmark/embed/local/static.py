"""The static embedder: thousands of passages a second, without numpy.

A vector is the normalised sum of a learned row for each piece of the text's words; word order does
not matter. Words are lower-cased runs of letters, digits and `_`. A word that the table does not
have is cut into the longest pieces that it has, from the left.

Sums are exact: each word is one big integer with a 32-bit lane per dimension, and adding words is
adding integers. Equal texts have equal vectors to the bit, in any batch and on any machine.

Known limits: the table knows English best, other languages in Latin script a little; only the first
64 bytes of a word count."""

# On the path of every cold search: pathlib would cost as much as opening the table.

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable, Sequence
from mmap import ACCESS_READ, mmap

from clawmark.embed.base import Traits, is_mostly_latin
from clawmark.embed.local.static_table import (
    MIDDLE,
    NO_PIECE,
    SHA256,
    WORD_START,
    Table,
    sha256,
)
from clawmark.model.errors import EmbeddingUnavailable, advice
from clawmark.model.values import Identity, Vector

DIMS = 256
PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "static.bin")
PROVIDER, MODEL = "static", "clawmark-static-1"
POOLING = "sum of lower-case words 2"
"""Part of the identity; the number changes when words are cut or summed differently."""
PROVIDER_KEY = "73541b10f74e2a91d85c209e16c085d7edd6126e99a47034272a56ed1db1f541"
"""The SHA-256 of provider, model, SHA-256 of the table and pooling, precomputed: importing
`hashlib` takes 2 ms, and a sync that finds nothing to do does not open the table."""

CALIBRATION = (0.0, 0.75)
"""Medians of random pairs of question and passage are 0.30 (locomo), 0.09 (notes), 0.06 (musique);
of the right passages one in twenty is above 0.57, 0.64, 0.61 (`python -m training.calibrate`)."""

LANE = 4
LONGEST_WORD = 64
LONGEST_PIECE = 25
CACHED_WORDS = 16_384
"""About 1.2 KB each."""
WORDS_AT_ONCE = 1_000
"""A lane holds 500,000 pieces (15 * 255 each) before it overflows; a word has at most 65."""
LANES = f"<{DIMS}i"
ONES = sum(1 << 8 * LANE * number for number in range(DIMS))
SIGN = 1 << 8 * LANE - 1

_SEPARATORS = bytes(
    byte if byte > 127 or chr(byte).isalnum() or byte == 0x5F else 32 for byte in range(256)
)
_TYPOGRAPHIC = "‘’“”„«»‹›–—…•·¿¡×→←↔⇒✓\u00a0\u2009\u200b\u202f\u3000。、，：；！？（）「」"


class StaticEmbedder:
    """Embeds with the word table that ships inside the package."""

    def __init__(self, path: str = PATH) -> None:
        self._path = path
        self._table: Table | None = None
        self._words: dict[bytes, int] = {}

    @property
    def identity(self) -> Identity:
        return Identity(provider=PROVIDER, model=MODEL, provider_key=PROVIDER_KEY, dims=DIMS)

    @property
    def traits(self) -> Traits:
        return Traits(f"{MODEL} (static)", *CALIBRATION, instant=True)

    def covers(self, text: str) -> bool:
        return is_mostly_latin(text)

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        if len(texts) > 1:
            self._open().prepare()
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> Vector:
        words = split_words(text)
        # A text without words gets the vector of an empty word: zero vectors are not allowed.
        sums = self._sum(words[:WORDS_AT_ONCE] or [b""])
        for start in range(WORDS_AT_ONCE, len(words), WORDS_AT_ONCE):
            part = self._sum(words[start : start + WORDS_AT_ONCE])
            sums = [one + other for one, other in zip(sums, part, strict=True)]
        # With integers the sum of squares is exact and the root correctly rounded everywhere.
        length = math.sqrt(sum([number * number for number in sums])) or 1.0
        return struct.pack(f"<{DIMS}f", *[number / length for number in sums])

    def embed_lines(self, texts: Sequence[str]) -> list[Vector]:
        """Vectors that are not normalised, for comparing angles only; twice as fast."""
        pack = struct.Struct(f"<{DIMS}f").pack
        return [pack(*self._sum(split_words(text)[:WORDS_AT_ONCE] or [b""])) for text in texts]

    def _sum(self, words: list[bytes]) -> Sequence[int]:
        """The sum of the words' rows, as integers."""
        try:
            total = sum(map(self._words.__getitem__, words))
        except KeyError:
            total = sum(map(self._learn(set(words)).__getitem__, words))
        # A lane holds its number plus 8 for each factor. Subtracting that from all lanes, leaving
        # signed numbers, takes two operations on the whole integer: no lane borrows from the next.
        factors = total >> (8 * LANE * DIMS)
        signed = (total + ONES * (SIGN - MIDDLE * factors)) ^ (ONES * SIGN)
        return struct.unpack_from(LANES, signed.to_bytes((DIMS + 1) * LANE, "little"))

    def _learn(self, words: set[bytes]) -> dict[bytes, int]:
        """Add words to the cache and return it; a full cache is replaced, because other threads may
        still read it.
        """
        table = self._open()
        known = self._words
        if len(known) + len(words) > CACHED_WORDS:
            known = self._words = {}
        for word in words:
            if word not in known:
                known[word] = _lanes_of(table, word)
        return known

    def _open(self) -> Table:
        if self._table is None:
            self._table = open_table(self._path)
        return self._table


def split_words(text: str) -> list[bytes]:
    """The lower-case words of a text in UTF-8, separated by all but letters, digits and `_`."""
    text = text.lower()
    if not text.isascii():
        for char in _TYPOGRAPHIC:
            text = text.replace(char, " ")
    return text.encode(errors="replace").translate(_SEPARATORS).split()


def split_pieces(find: Callable[[str], int], word: str) -> list[int]:
    """The rows of a word's longest pieces, from the left; a character without a row becomes its
    UTF-8 bytes.
    """
    rows: list[int] = []
    at = 0
    while at < len(word):
        for end in range(min(len(word), at + LONGEST_PIECE), at, -1):
            row = find(word[at:end])
            if row != NO_PIECE:
                rows.append(row)
                at = end
                break
        else:
            rows += word[at].encode()
            at += 1
    return rows


def open_table(path: str) -> Table:
    """Map and check the table; raises EmbeddingUnavailable if it is not the one of this version."""
    hint = "Install Clawmark again: `pip install --force-reinstall clawmark`."
    try:
        with open(path, "rb") as file:
            data = mmap(file.fileno(), 0, access=ACCESS_READ)
    except (OSError, ValueError) as error:
        message = f"The word table {path} cannot be read: {error}."
        hint = advice(error, hint) if isinstance(error, OSError) else hint
        raise EmbeddingUnavailable(message, provider=PROVIDER, model=MODEL, hint=hint) from error
    if sha256(data) != SHA256:
        message = f"The word table {path} is damaged: its SHA-256 is not the expected one."
        raise EmbeddingUnavailable(message, provider=PROVIDER, model=MODEL, hint=hint)
    return Table(data)


def _lanes_of(table: Table, word: bytes) -> int:
    """A word as one integer: a lane per dimension with the sum over its pieces, and a last lane
    with the sum of factors.
    """
    lanes = bytearray((DIMS + 1) * LANE)
    lanes[DIMS * LANE] = 1
    total = 0
    for row in split_pieces(table.find, WORD_START + word[:LONGEST_WORD].decode(errors="ignore")):
        lanes[0 : DIMS * LANE : LANE] = table.row(row)
        total += table.factor(row) * int.from_bytes(lanes, "little")
    return total
