"""Chooses what is shown of the hits, within one budget of characters for all of them.

Passages are split into lines, and long lines into sentences. The value of a piece depends on the
score of its hit, the query terms it contains (rare ones more), its similarity in meaning, and a
little on its neighbours. Every hit shows its best piece; the rest of the budget goes to the best
pieces of all."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from clawmark.model.values import Term

LIMIT = 700
"""Characters of the budget per requested hit."""
LONG_PIECE = 240
MAX_PIECES = 128
"""Above this number, short pieces are joined: each piece is compared with the query."""
HIT, NEIGHBOURS = 3.0, 0.3
"""What the score of its hit and the value of its neighbours add to a piece's own value."""
GAP = "…"
# A class with a character beyond Latin-1 takes 0.3 ms to compile, so plain text gets a shorter
# pattern.
_SENTENCE_END = r"(?<=[.!?…])[\"')\]]*\s+|(?<=[。！？])"
_ASCII_SENTENCE_END = r"(?<=[.!?])[\"')\]]*\s+"

_MARKS = dict.fromkeys(map(ord, "\n\t.,;:!?()[]{}<>\"'`*_-/#|=+~&%$@^\\"), " ")


class Shown(NamedTuple):
    """A passage to be shown in part."""

    text: str
    start_line: int
    score: float


class Snippet(NamedTuple):
    """The text to show and its line ranges, in order; a line with an ellipsis separates two
    ranges."""

    text: str
    ranges: tuple[tuple[int, int], ...]


class Spotter:
    """Finds a query's terms in text without the index; a regular expression would cost more to
    compile."""

    def __init__(self, needles: dict[str, float]) -> None:
        self.needles = needles
        """What to look for in folded text, and how much finding it is worth."""
        self._bare = [needle.strip() for needle in needles]

    def count(self, text: str) -> int:
        """Count roughly how many terms a text contains: cheaper than `weight`, ignores word
        boundaries."""
        lowered = text.lower()
        return sum([needle in lowered for needle in self._bare])

    def weight(self, text: str) -> float:
        """Sum what the terms found in a text are worth."""
        folded = _folded(text)
        return sum([worth for needle, worth in self.needles.items() if needle in folded])


def make_spotter(terms: Sequence[Term], weights: Sequence[float]) -> Spotter:
    """Cut the terms to their stems; a word must match at its start, an unspaced script anywhere."""
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
    """Lower-case the text, with a space before every word and in place of every mark."""
    return " " + text.casefold().translate(_MARKS)


def pick_evidence(
    passages: Sequence[Shown], spotter: Spotter, near: Mapping[str, float], budget: int
) -> list[Snippet]:
    """Return the snippet of each passage; together at most `budget` characters, without
    ellipses. `near` has how similar in meaning lines are to the query, as far as that is known."""
    if sum(len(passage.text) for passage in passages) <= budget:
        return [_snippet(passage, [(0, len(passage.text))]) for passage in passages]
    pieces = [_joined(_pieces(passage.text), len(passage.text)) for passage in passages]
    worth = [
        _worth(passage, parts, spotter, near)
        for passage, parts in zip(passages, pieces, strict=True)
    ]
    chosen = _choose(pieces, worth, budget)
    return [
        _snippet(passage, [parts[number] for number in sorted(kept)])
        for passage, parts, kept in zip(passages, pieces, chosen, strict=True)
    ]


def pieces_to_show(text: str) -> list[str]:
    """Return the parts of a passage of which a snippet shows some, without blank ones."""
    pieces = [text[start:end] for start, end in _joined(_pieces(text), len(text))]
    return [piece for piece in pieces if piece.strip()]


def _worth(
    passage: Shown,
    pieces: Sequence[tuple[int, int]],
    spotter: Spotter,
    near: Mapping[str, float],
) -> list[float]:
    parts = [passage.text[start:end] for start, end in pieces]
    own = [
        spotter.weight(part) + max(0.0, near.get(part, 0.0)) if part.strip() else 0.0
        for part in parts
    ]
    around = [0.0, *own, 0.0]
    return [
        HIT * passage.score + value + NEIGHBOURS * (around[number] + around[number + 2]) / 2
        if parts[number].strip()
        else -1.0
        for number, value in enumerate(own)
    ]


def _choose(
    pieces: Sequence[Sequence[tuple[int, int]]], worth: Sequence[Sequence[float]], budget: int
) -> list[set[int]]:
    """Choose the pieces to show: the best of each passage, then the best of all while there is
    room."""
    chosen: list[set[int]] = [set() for _ in pieces]
    share = budget // max(1, len(pieces))
    for kept, parts, values in zip(chosen, pieces, worth, strict=True):
        best = max(range(len(parts)), key=values.__getitem__, default=None)
        if best is not None:
            kept.add(best)
            budget -= min(share, parts[best][1] - parts[best][0])
    every = [
        (-values[number], at, number)
        for at, values in enumerate(worth)
        for number in range(len(values))
    ]
    for _, at, number in sorted(every):
        start, end = pieces[at][number]
        if number not in chosen[at] and end - start <= budget:
            chosen[at].add(number)
            budget -= end - start
    return chosen


def _snippet(passage: Shown, kept: Sequence[tuple[int, int]]) -> Snippet:
    """Build the snippet of the chosen pieces; neighbours are joined with the blank lines between
    them."""
    text = passage.text
    runs: list[tuple[int, int]] = []
    for start, end in kept:
        if runs and not text[runs[-1][1] : start].strip():
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((start, end))
    shown, ranges = [], []
    for start, end in runs:
        while start < end and text[start].isspace():
            start += 1
        while end > start and text[end - 1].isspace():
            end -= 1
        if start == end:
            continue
        first = passage.start_line + text.count("\n", 0, start)
        shown.append(text[start:end])
        ranges.append((first, first + text.count("\n", start, end)))
    return Snippet(
        f"\n{GAP}\n".join(shown), tuple(ranges) or ((passage.start_line, passage.start_line),)
    )


def pieces_of(text: str) -> list[str]:
    """Split a text into lines, and long lines into sentences."""
    return [text[start:end] for start, end in _pieces(text)]


def _pieces(text: str) -> list[tuple[int, int]]:
    """Yield start and end of each line, of sentences in long lines, of runs of words in long
    sentences."""
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
    """Return the pieces of a text; if there are too many, short neighbours are joined."""
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


def _cut_ending(word: str) -> str:
    """Cut an English word so that it matches its other forms."""
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
    return (
        "\u0e00" <= character <= "\u0eff"
        or "\u1780" <= character <= "\u17ff"
        or "\u2e80" <= character <= "\uffff"
    )
