"""Byte-pair merging, and RoBERTa's byte-level tokenizer.

A text is cut into words (with the space before them), each word becomes characters that stand for
its bytes, and neighbours merge in the order of the list of merges. Special tokens are never read
from the text: a note that contains `<s>` contains three characters.

Known limit: a run of more than 256 characters without a break is cut there before merging, so that
a line of a megabyte cannot take quadratic time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise

NEVER = 1 << 30
"""The rank of a pair that does not merge."""
START, END = 0, 2
CACHED_WORDS = 32_768
LONGEST_WORD = 256

# Letters are what \w has besides digits, `_` and the numerals that \d does not know. Of those
# numerals only these few have merges of their own; for the others the class makes no difference.
_NUMERALS = "\u00b2\u00b3\u00b9\u00bc-\u00be"
_SPACE = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
# Compiled on first use: a search with static vectors imports this module and cuts no words with it.
_WORD = (
    rf"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_{_NUMERALS}]+| ?[\d{_NUMERALS}]+| ?(?:[^\w{_SPACE}]|_)+"
    rf"|[{_SPACE}]+(?![^{_SPACE}])|[{_SPACE}]+"
)


def merge(parts: list[str], rank: Callable[[str, str], int]) -> list[str]:
    """Join neighbours, lowest rank first and leftmost among equals, until no pair merges."""
    pairs = [rank(one, other) for one, other in pairwise(parts)]
    while pairs and (best := min(pairs)) != NEVER:
        at = pairs.index(best)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
        del pairs[at]
        if at:
            pairs[at - 1] = rank(parts[at - 1], parts[at])
        if at < len(pairs):
            pairs[at] = rank(parts[at], parts[at + 1])
    return parts


class Tokenizer:
    """Made from the bytes of a `tokenizer.json`, in which pieces are looked up one by one until
    `prepare` is called.
    """

    def __init__(self, source: bytes) -> None:
        # Parsing all of it takes twice as long as a query. All merges are needed, but only a few
        # entries of the vocabulary.
        vocabulary, merges = source.index(b'"vocab":'), source.rindex(b'"merges":')
        self._vocabulary = source[vocabulary + len(b'"vocab":') : merges].rstrip(b", \n")
        pairs = json.JSONDecoder().raw_decode(source[merges + len(b'"merges":') :].decode())[0]
        self._ranks: dict[str, int] = dict(zip(pairs, range(len(pairs)), strict=True))
        self._ids: dict[str, int] = {}
        self._words: dict[str, tuple[int, ...]] = {}
        self._bytes = _byte_characters()

    def prepare(self) -> None:
        """Read the whole vocabulary: worth its time from a few dozen texts on."""
        if self._vocabulary:
            self._ids = json.loads(self._vocabulary)
            self._vocabulary = b""

    def encode(self, text: str, limit: int) -> list[int]:
        """The token ids between the start and the end token, at most `limit` with them."""
        tokens = [START]
        for word in split_words(text):
            tokens += self._words.get(word) or self._learn(word)
            if len(tokens) >= limit:
                break
        return [*tokens[: limit - 1], END]

    def _learn(self, word: str) -> tuple[int, ...]:
        if len(self._words) >= CACHED_WORDS:
            self._words = {}
        characters = word.encode(errors="replace").decode("latin-1").translate(self._bytes)
        tokens = self._words[word] = tuple(map(self._number, merge(list(characters), self._rank)))
        return tokens

    def _rank(self, one: str, other: str) -> int:
        return self._ranks.get(f"{one} {other}", NEVER)

    def _number(self, piece: str) -> int:
        number = self._ids.get(piece)
        if number is None:
            # A quote inside a name is escaped and never follows a comma, so only a whole name
            # matches.
            name = b"," + json.dumps(piece, ensure_ascii=False).encode() + b":"
            start = self._vocabulary.index(name) + len(name)
            digits = self._vocabulary[start : start + 8]
            number = self._ids[piece] = int(
                digits[: len(digits) - len(digits.lstrip(b"0123456789"))]
            )
        return number


def split_words(text: str) -> Iterator[str]:
    """The words as GPT-2 cuts them: contractions, letters, numerals, punctuation (each with one
    space before), and spaces.
    """
    for match in re.finditer(_WORD, text):
        word = match.group()
        for start in range(0, len(word), LONGEST_WORD):
            yield word[start : start + LONGEST_WORD]


def _byte_characters() -> dict[int, int]:
    """The printable character that stands for each byte: its own where there is one, else the next
    from 256 on.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: byte for byte in printable} | {
        byte: 256 + place for place, byte in enumerate(others)
    }
