"""The words of a chunk as terms: the tokens of FTS5, hashed for one edition of one scope.

SQLite's tokenizer itself cuts the text, so both stores search for the same words. Single letters of
scripts without spaces, which queries look for in twos and threes, are also stored as such groups:
otherwise nearly every Chinese query would have to check the positions of two common letters."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import apsw

from clawmark.store.base import ChunkWords
from clawmark.text.keywords.scripts import SPACED, UNSPACED, script_of

COLUMNS = 3
"""What a chunk states, its headings and dates, and what it only asks."""
_ASKED = 2
KNOWN_WORDS = 100_000
"""So many words are kept with their terms; about 15 MB."""
_TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2"])


class _Tokenizers(threading.local):
    """A tokenizer for each thread: it belongs to a connection."""

    def __init__(self) -> None:
        self.connection = apsw.Connection(":memory:")
        self.cut: Callable[..., Any] = self.connection.fts5_tokenizer(*_TOKENIZER)


_tokenizers = _Tokenizers()


class PackedWords(NamedTuple):
    """The words of a chunk as they are stored."""

    length: int
    columns: list[int]
    """The number of tokens in each column."""
    terms: list[int]
    stated: list[int]
    """How often each term occurs in what the chunk states, and in its headings and dates."""
    asked: list[int] | None
    sequence: bytes
    """The number of the term at each position; two bytes each, or four if there are many terms."""


class Phrase(NamedTuple):
    """Words that follow each other, as terms; `is_term` if one term stands for all of them."""

    words: tuple[int, ...]
    term: int
    is_term: bool


class Hasher:
    """Hashes words to terms for one edition of one scope."""

    def __init__(self, scope: int, edition: int) -> None:
        self._salt = scope.to_bytes(8, "little") + edition.to_bytes(8, "little")
        self._known: dict[str, int] = {}

    def term(self, word: str) -> int:
        """Return the term of a word or of a group of letters."""
        found = self._known.get(word)
        if found is None:
            if len(self._known) >= KNOWN_WORDS:
                self._known = {}
            digest = blake2b(word.encode(), digest_size=8, salt=self._salt).digest()
            found = self._known[word] = int.from_bytes(digest, "little", signed=True)
        return found

    def phrase(self, text: str) -> Phrase | None:
        """Return the phrase of a query term; None if it has no words."""
        tokens = tokenize(text.replace('"', " "))
        if not tokens:
            return None
        words = tuple(map(self.term, tokens))
        is_group = len(tokens) in _group_sizes(tokens)
        return Phrase(words, self.term(" ".join(tokens)), is_group or len(tokens) == 1)

    def pack(self, words: ChunkWords) -> PackedWords:
        """Return the words of a chunk as they are stored."""
        texts = (*words, "", "", "")[:COLUMNS]
        columns = [tokenize(text) for text in texts]
        numbers: dict[str, int] = {}
        sequence = [
            numbers.setdefault(token, len(numbers)) for tokens in columns for token in tokens
        ]
        sizes = [len(tokens) for tokens in columns]
        for text, tokens in zip(texts, columns, strict=True):
            if not text.isascii():
                groups = _groups(tokens)
                tokens += groups
                for group in groups:
                    numbers.setdefault(group, len(numbers))
        stated, asked = [0] * len(numbers), [0] * len(numbers)
        for column, tokens in enumerate(columns):
            counts = asked if column == _ASKED else stated
            for token in tokens:
                counts[numbers[token]] += 1
        return PackedWords(
            length=len(sequence),
            columns=sizes,
            terms=list(map(self.term, numbers)),
            stated=stated,
            asked=asked if columns[_ASKED] else None,
            sequence=_packed(sequence),
        )


@lru_cache(maxsize=8)
def hasher_of(scope: int, edition: int) -> Hasher:
    """Return the hasher of an edition; a writer uses the same one for many files."""
    return Hasher(scope, edition)


def array_text(numbers: Sequence[int]) -> str:
    """Return numbers as PostgreSQL reads an array."""
    return "{" + ",".join(map(str, numbers)) + "}"


def tokenize(text: str) -> list[str]:
    """Return the tokens of a text, as FTS5 stores them."""
    if not text:
        return []
    tokens: list[str] = _tokenizers.cut(
        text.encode("utf-8", "replace"),
        apsw.FTS5_TOKENIZE_DOCUMENT,
        None,
        include_offsets=False,
        include_colocated=False,
    )
    return tokens


def unpack(columns: Sequence[int], sequence: bytes) -> list[Sequence[int]]:
    """Return the numbers of the terms in each column."""
    total = sum(columns)
    is_short = not total or len(sequence) // total == 2
    numbers = memoryview(sequence).cast("H" if is_short else "I").tolist()
    unpacked: list[Sequence[int]] = []
    start = 0
    for length in columns:
        unpacked.append(numbers[start : start + length])
        start += length
    return unpacked


def _packed(sequence: Sequence[int]) -> bytes:
    return array("I" if max(sequence, default=0) > 0xFFFF else "H", sequence).tobytes()


def _groups(tokens: Sequence[str]) -> list[str]:
    """Return the groups of letters in a text of a script without spaces."""
    groups = []
    for start, token in enumerate(tokens):
        if len(token) == 1 and token >= "\u0e00" and script_of(ord(token)) != SPACED:
            for size in (2, 3):
                group = tokens[start : start + size]
                if size == len(group) in _group_sizes(group):
                    groups.append(" ".join(group))
    return groups


def _group_sizes(tokens: Sequence[str]) -> tuple[int, ...]:
    """Return the sizes in which these letters are stored as groups; none for ordinary words."""
    if not all(len(token) == 1 and token >= "\u0e00" for token in tokens):
        return ()
    scripts = {script_of(ord(token)) for token in tokens}
    if SPACED in scripts:
        return ()
    return (2, 3) if scripts == {UNSPACED} else (2,)
