"""BERT's tokenizer: text in, token numbers out, as the model was trained to read them.

The vocabulary comes from whoever opened the model's folder. A text loses control characters, and
where the model wants it its accents and capitals; signs and Chinese characters become words of
their own; each word is cut into the longest pieces the vocabulary has, from left to right, and a
word that cannot be cut is unknown as a whole. Special tokens are never read from the text: a note
that contains `[SEP]` contains five characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple

CACHED_WORDS = 32_768
_CHINESE = (
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF)),
    *((0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0x2F800, 0x2FA1F)),
)
"""As the tokenizer has them that models are used with today, the gap before 0x2B920 included."""


class Habits(NamedTuple):
    """How the model's tokenizer treats a text before it looks for words."""

    lower: bool = True
    accents: bool = False
    """Whether accents are kept."""
    chinese: bool = True
    """Whether Chinese characters stand alone."""
    clean: bool = True
    """Whether control characters are taken out."""


class WordPiece:
    """Cuts with the vocabulary of one model; `before` and `after` are the marks around every text."""

    def __init__(
        self,
        vocabulary: Mapping[str, int],
        before: Sequence[int],
        after: Sequence[int],
        *,
        unknown: str = "[UNK]",
        inside: str = "##",
        longest_word: int = 100,
        habits: Habits = Habits(),  # noqa: B008 - immutable
    ) -> None:
        self._vocabulary = vocabulary
        self._before, self._after = list(before), list(after)
        self._unknown = (vocabulary[unknown],)
        self._inside = inside
        self._longest_word = longest_word
        self._longest_piece = max(map(len, vocabulary))
        self._accents = habits.accents
        self._first = _Cleaned(habits)
        self._second = _Worded(habits)
        self._words: dict[str, tuple[int, ...]] = {}

    def encode(self, text: str, limit: int) -> list[int]:
        """The token numbers between the marks, at most `limit` with them."""
        room = limit - len(self._before) - len(self._after)
        tokens: list[int] = []
        for word in self.split(text):
            tokens += self._words.get(word) or self._learn(word)
            if len(tokens) >= room:
                break
        return [*self._before, *tokens[:room], *self._after]

    def split(self, text: str) -> list[str]:
        """The words of a text as the model sees them."""
        cleaned = text.translate(self._first)
        if not self._accents and not cleaned.isascii():
            cleaned = unicodedata.normalize("NFD", cleaned)
        return cleaned.translate(self._second).split()

    def _learn(self, word: str) -> tuple[int, ...]:
        if len(self._words) >= CACHED_WORDS:
            self._words = {}
        tokens = self._words[word] = (
            self._cut(word) if len(word) <= self._longest_word else self._unknown
        )
        return tokens

    def _cut(self, word: str) -> tuple[int, ...]:
        tokens: list[int] = []
        start = 0
        while start < len(word):
            mark = self._inside if start else ""
            for end in range(min(len(word), start + self._longest_piece), start, -1):
                number = self._vocabulary.get(mark + word[start:end])
                if number is not None:
                    break
            else:
                return self._unknown
            tokens.append(number)
            start = end
        return tuple(tokens)


class _Cleaned(dict[int, str]):
    """What becomes of a character first: nothing, a space, itself, or itself between spaces; filled
    as it is asked.
    """

    def __init__(self, habits: Habits) -> None:
        super().__init__()
        self._habits = habits

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if self._habits.clean and (code in (0, 0xFFFD) or _is_control(char)):
            result = ""
        elif self._habits.clean and char.isspace():
            result = " "
        elif self._habits.chinese and any(first <= code <= last for first, last in _CHINESE):
            result = f" {char} "
        else:
            result = char
        self[code] = result
        return result


class _Worded(dict[int, str]):
    """What becomes of a character then: accents go, capitals shrink, signs stand between spaces."""

    def __init__(self, habits: Habits) -> None:
        super().__init__()
        self._habits = habits

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if not self._habits.accents and unicodedata.category(char) == "Mn":
            result = ""
        else:
            # One character at a time: Python's lower() knows the Greek final sigma, the model's
            # tokenizer does not.
            result = char.lower() if self._habits.lower else char
            if _is_sign(char):
                result = f" {result} "
        self[code] = result
        return result


def _is_control(char: str) -> bool:
    return char not in "\t\n\r" and unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs")


def _is_sign(char: str) -> bool:
    """Punctuation, and every ASCII character that is neither letter, digit nor space."""
    if char.isascii():
        return char.isprintable() and not char.isalnum() and char != " "
    return unicodedata.category(char).startswith("P")
