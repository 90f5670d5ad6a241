"""Match a keyword query against the words of one chunk, and score it with BM25, as FTS5 does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from clawmark.model.values import KeywordQuery
from clawmark.store.postgres.tokens import Hasher, Phrase

K1, B = 1.2, 0.75
"""FTS5's constants of BM25."""
WEIGHTS = (1.0, 1.0, 0.3)
"""The weight of a match in each column: text, headings and dates, what is only asked."""
STATED = 2
"""The first columns are those that state something."""
_COLUMN = 1 << 32
"""Positions of different columns are this far apart."""


class Totals(NamedTuple):
    """The number of chunks and of tokens in the edition that answers."""

    chunks: int
    tokens: int

    @property
    def average(self) -> float:
        return self.tokens / self.chunks if self.tokens else 1.0


class Parts(NamedTuple):
    """A query in terms: phrases, and pairs of phrases that must be close."""

    phrases: tuple[Phrase, ...]
    pairs: tuple[tuple[Phrase, Phrase], ...]
    stated_only: bool
    distance: int

    @property
    def single(self) -> tuple[int, ...]:
        """The terms that need no look at positions."""
        return tuple(phrase.term for phrase in self.phrases if phrase.is_term)

    @property
    def long(self) -> tuple[Phrase, ...]:
        """The phrases whose words must be found next to each other."""
        return tuple(phrase for phrase in self.phrases if not phrase.is_term)


class Doc(NamedTuple):
    """The words of one chunk, as far as a query needs them."""

    length: int
    columns: Sequence[Sequence[int]]
    """The numbers of the terms at each position, column by column."""
    numbers: Mapping[int, int]
    """The number of each term of the query that the chunk has."""


def parts_of(query: KeywordQuery, hasher: Hasher) -> Parts:
    """Return a query in terms; what has no words is left out."""
    phrases = [phrase for term in query.terms if (phrase := hasher.phrase(term))]
    pairs = []
    for one, other in query.pairs:
        near = [phrase for term in (one, other) if (phrase := hasher.phrase(term))]
        if len(near) == 2:
            pairs.append((near[0], near[1]))
        else:
            phrases += near
    return Parts(
        phrases=tuple(phrases),
        pairs=tuple(pairs),
        stated_only=query.stated_only,
        distance=query.distance,
    )


def rarity(total: int, matches: int) -> float:
    """Return the weight of a phrase by how many of the chunks have it."""
    return max(math.log((total - matches + 0.5) / (matches + 0.5)), 1e-6)


def contribution(rare: float, frequency: float, length: int, totals: Totals) -> float:
    """Return what a phrase adds to the score of a chunk.

    `rare * frequency * (K1 + 1) / (frequency + norm)`, in the form and order in which
    `keywords` writes it in SQL, so that both give the same number."""
    norm = K1 * (1.0 - B) + K1 * B / totals.average * length
    return rare * (K1 + 1.0) * (1.0 - norm / (norm + frequency))


def frequency_of(positions: Sequence[int]) -> float:
    """Return how often a phrase occurs, weighted by column."""
    return sum(WEIGHTS[position // _COLUMN] for position in positions)


def positions_of(doc: Doc, phrase: Phrase, *, stated_only: bool) -> list[int]:
    """Return where a phrase begins, in order."""
    try:
        numbers = [doc.numbers[word] for word in phrase.words]
    except KeyError:
        return []
    found = []
    for column, tokens in enumerate(doc.columns[:STATED] if stated_only else doc.columns):
        last = len(tokens) - len(numbers)
        at = -1
        while True:
            try:
                at = tokens.index(numbers[0], at + 1)
            except ValueError:
                break
            if at <= last and list(tokens[at : at + len(numbers)]) == numbers:
                found.append(column * _COLUMN + at)
    return found


def near_positions(
    one: Sequence[int], other: Sequence[int], lengths: tuple[int, int], distance: int
) -> tuple[list[int], list[int]]:
    """Return those positions of two phrases that are close to one of the other.

    This is FTS5's algorithm for NEAR; `lengths` are the numbers of words of the phrases."""
    kept: tuple[list[int], list[int]] = ([], [])
    lists, at = (one, other), [0, 0]
    if not one or not other:
        return kept
    while True:
        latest = lists[0][at[0]]
        is_match = False
        while not is_match:
            is_match = True
            for side in (0, 1):
                earliest = latest - lengths[side] - distance
                if earliest <= lists[side][at[side]] <= latest:
                    continue
                is_match = False
                while lists[side][at[side]] < earliest:
                    at[side] += 1
                    if at[side] == len(lists[side]):
                        return kept
                latest = max(latest, lists[side][at[side]])
        for side in (0, 1):
            position = lists[side][at[side]]
            if not kept[side] or kept[side][-1] != position:
                kept[side].append(position)
        following = [
            lists[side][at[side] + 1] if at[side] + 1 < len(lists[side]) else math.inf
            for side in (0, 1)
        ]
        side = 1 if following[1] < following[0] else 0
        at[side] += 1
        if at[side] == len(lists[side]):
            return kept


def score(
    doc: Doc, parts: Parts, rare: Mapping[int, float], totals: Totals, *, with_single: bool = True
) -> float | None:
    """Return the BM25 score of a chunk; None if it does not match. `rare` is by phrase term."""
    matched, total = False, 0.0
    for phrase in parts.phrases:
        if phrase.is_term and not with_single:
            continue
        positions = positions_of(doc, phrase, stated_only=parts.stated_only)
        if positions:
            matched = True
            frequency = frequency_of(positions)
            total += contribution(rare[phrase.term], frequency, doc.length, totals)
    for one, other in parts.pairs:
        both = [positions_of(doc, phrase, stated_only=parts.stated_only) for phrase in (one, other)]
        near = near_positions(both[0], both[1], (len(one.words), len(other.words)), parts.distance)
        for phrase, positions in zip((one, other), near, strict=True):
            if positions:
                matched = True
                frequency = frequency_of(positions)
                total += contribution(rare[phrase.term], frequency, doc.length, totals)
    return total if matched else None
