"""RoBERTa's byte-level tokenizer: text in, token numbers out, as the model was trained to read
them.

Everything comes from the tokenizer's JSON inside the weights. A text is cut into words (with the
space before them), each word becomes characters that stand for its bytes, and neighbours merge in
the order of the list of merges. Special tokens are never read from the text: a note that contains
`<s>` contains three characters.

Known limit: a run of more than 256 characters without a break is cut there before merging, so that
a line of a megabyte cannot take quadratic time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from clawmark.embed.local.merge import NEVER, merge

START, END = 0, 2
CACHED_WORDS = 32_768
LONGEST_WORD = 256

# Letters are what \w has besides digits, `_` and the numerals that \d does not know. Of those only
# these few have merges of their own, so for the others it makes no difference on which side they
# fall.
_NUMERALS = "\u00b2\u00b3\u00b9\u00bc-\u00be"
_SPACE = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_WORD = re.compile(
    rf"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_{_NUMERALS}]+| ?[\d{_NUMERALS}]+| ?(?:[^\w{_SPACE}]|_)+"
    rf"|[{_SPACE}]+(?![^{_SPACE}])|[{_SPACE}]+"
)


class Tokenizer:
    """Made from the bytes of a `tokenizer.json`; pieces are looked up in it one by one until
    `prepare`.
    """

    def __init__(self, source: bytes) -> None:
        # Parsing all of it takes twice as long as a query: the merges are needed whole, the
        # vocabulary is not.
        vocabulary, merges = source.index(b'"vocab":'), source.rindex(b'"merges":')
        self._vocabulary = source[vocabulary + len(b'"vocab":') : merges].rstrip(b", \n")
        pairs = json.JSONDecoder().raw_decode(source[merges + len(b'"merges":') :].decode())[0]
        self._ranks: dict[str, int] = dict(zip(pairs, range(len(pairs)), strict=True))
        self._ids: dict[str, int] = {}
        self._words: dict[str, tuple[int, ...]] = {}
        self._bytes = _byte_characters()

    def prepare(self) -> None:
        """Read the whole vocabulary, which pays for itself after a few dozen texts."""
        if self._vocabulary:
            self._ids = json.loads(self._vocabulary)
            self._vocabulary = b""

    def encode(self, text: str, limit: int) -> list[int]:
        """The token numbers between the start and the end mark, at most `limit` with them."""
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
            # A quote inside a name is escaped and so never follows a comma: only a whole name can
            # match.
            name = b"," + json.dumps(piece, ensure_ascii=False).encode() + b":"
            start = self._vocabulary.index(name) + len(name)
            digits = self._vocabulary[start : start + 8]
            number = self._ids[piece] = int(
                digits[: len(digits) - len(digits.lstrip(b"0123456789"))]
            )
        return number


def split_words(text: str) -> Iterator[str]:
    """The words as GPT-2 cuts them: contractions, letters, numerals, signs, each with one space
    before, and spaces.
    """
    for match in _WORD.finditer(text):
        word = match.group()
        for start in range(0, len(word), LONGEST_WORD):
            yield word[start : start + LONGEST_WORD]


def _byte_characters() -> dict[int, int]:
    """The printable character that stands for each byte: itself where it has one, else the next
    from 256 on.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: byte for byte in printable} | {
        byte: 256 + place for place, byte in enumerate(others)
    }
