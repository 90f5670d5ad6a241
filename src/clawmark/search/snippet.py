"""Cuts the part of a passage that answers: at most 700 characters around what the query asked for, with its lines.

The passage is taken apart into lines, and long lines into sentences. Each piece is worth the query terms it holds, rare
ones more, plus how near it is in meaning when an instant embedder can say so; the best run of pieces that fits wins.
"""

import re
from collections.abc import Callable, Sequence

from clawmark.types import Term
from clawmark.values import NamedTuple

LIMIT = 700
LONG_PIECE = 240
MAX_PIECES = 128
"""Above this, short pieces are joined: a passage of one-letter lines has thousands, and each is compared with the query."""
# A class with a character beyond Latin-1 takes 0.3 ms to compile, so text that has none gets the shorter pattern.
_SENTENCE_END = r"(?<=[.!?…])[\"')\]]*\s+|(?<=[。！？])"
_ASCII_SENTENCE_END = r"(?<=[.!?])[\"')\]]*\s+"

_MARKS = dict.fromkeys(map(ord, "\n\t.,;:!?()[]{}<>\"'`*_-/#|=+~&%$@^\\"), " ")

Nearness = Callable[[Sequence[str]], Sequence[float]]


class Snippet(NamedTuple):
    """The text to show and the lines it comes from."""

    text: str
    start_line: int
    end_line: int


class Spotter:
    """Finds a query's terms in text, without the index; a pattern would cost more to compile than it saves."""

    def __init__(self, needles: dict[str, float]) -> None:
        self.needles = needles
        """What to look for in folded text, and what finding it is worth."""

    def found(self, text: str) -> set[str]:
        folded = _folded(text)
        return {needle for needle in self.needles if needle in folded}


def make_spotter(terms: Sequence[Term], weights: Sequence[float]) -> Spotter:
    """Needles are the terms cut to their stems; a word counts from its beginning, an unspaced script anywhere."""
    needles: dict[str, float] = {}
    for term, weight in zip(terms, weights, strict=True):
        needle = _folded(term.text).rstrip()
        if needle.isascii() and needle[1:].isalpha() and len(needle) > 5:
            needle = _cut_ending(needle)
        elif needle[1:] and _is_unspaced(needle[1]):
            needle = needle[1:]
        if needle.strip():
            needles[needle] = max(weight, needles.get(needle, 0.0))
    return Spotter(needles)


def _folded(text: str) -> str:
    """Small letters, and a space before every word and for every mark."""
    return " " + text.casefold().translate(_MARKS)


def cut_snippet(
    text: str, start_line: int, spotter: Spotter, nearness: Nearness | None = None, limit: int = LIMIT
) -> Snippet:
    """The best run of pieces of a passage that begins at `start_line`; always a part of it to the letter."""
    if len(text) <= limit:
        return _between(text, start_line, 0, len(text))
    pieces = _joined(_pieces(text), len(text))
    parts = [text[start:end] for start, end in pieces]
    found = [spotter.found(part) for part in parts]
    near = nearness(parts) if nearness else [0.0] * len(parts)
    first, last = _best_run(pieces, found, near, spotter.needles, limit)
    return _between(text, start_line, pieces[first][0], min(pieces[last][1], pieces[first][0] + limit))


def _best_run(
    pieces: Sequence[tuple[int, int]],
    found: Sequence[set[str]],
    near: Sequence[float],
    weights: dict[str, float],
    limit: int,
) -> tuple[int, int]:
    """The run of pieces within the limit that is worth most: distinct terms first, then every piece's own worth."""
    worth = [sum(weights.get(term, 0.0) for term in terms) + max(0.0, near[n]) for n, terms in enumerate(found)]
    best, best_value = (0, 0), -1.0
    for first in range(len(pieces)):
        terms, distinct, value = set[str](), 0.0, 0.0
        for last in range(first, len(pieces)):
            if pieces[last][1] - pieces[first][0] > limit and last > first:
                break
            if not found[last] <= terms:
                distinct += sum(weights.get(term, 0.0) for term in found[last] - terms)
                terms |= found[last]
            value += worth[last]
            total = distinct + 0.5 * value
            if total > best_value + 1e-9:
                best, best_value = (first, last), total
    return best


def _pieces(text: str) -> list[tuple[int, int]]:
    """Lines, long lines in sentences, overlong sentences in runs of words: where each starts and ends."""
    pieces = []
    start = 0
    for line in text.split("\n"):
        end = start + len(line)
        ends = [end]
        if len(line) > LONG_PIECE:
            pattern = re.compile(_ASCII_SENTENCE_END if line.isascii() else _SENTENCE_END)
            ends = [match.end() for match in pattern.finditer(text, start, end)] + [end]
        for stop in ends:
            while stop - start > LIMIT // 2:
                cut = text.rfind(" ", start + LIMIT // 4, start + LIMIT // 2)
                cut = cut + 1 if cut > 0 else start + LIMIT // 2
                pieces.append((start, cut))
                start = cut
            if stop > start or not line:
                pieces.append((start, stop))
            start = stop
        start = end + 1
    return pieces


def _joined(pieces: list[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    """The pieces of a text of this length; if there are too many, short neighbours are joined."""
    if len(pieces) <= MAX_PIECES:
        return pieces
    size = min(LONG_PIECE, 2 * length // MAX_PIECES)
    joined = [pieces[0]]
    for start, end in pieces[1:]:
        first = joined[-1][0]
        if end - first <= size:
            joined[-1] = (first, end)
        else:
            joined.append((start, end))
    return joined


def _between(text: str, start_line: int, start: int, end: int) -> Snippet:
    """The passage from start to end without blank edges, and the lines that is."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    first = start_line + text.count("\n", 0, start)
    return Snippet(text[start:end], first, first + text.count("\n", start, end))


def _cut_ending(word: str) -> str:
    """Enough of an English word to meet its other forms."""
    for ending in (
        "ations",
        "ation",
        "ingly",
        "ings",
        "ing",
        "ies",
        "ied",
        "ers",
        "er",
        "ed",
        "es",
        "ly",
        "s",
        "e",
        "y",
    ):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _is_unspaced(character: str) -> bool:
    return "\u0e00" <= character <= "\u0eff" or "\u1780" <= character <= "\u17ff" or "\u2e80" <= character <= "\uffff"
