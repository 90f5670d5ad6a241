"""Which combinations of terms make a row worth ranking, and how many rows have them."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)
ALMOST_NOTHING = 1e-9
"""Sums of logarithms that differ by less than this are equal."""
MORE_ROWS = 4
"""By how much the number of rows should grow from one threshold to the next."""


def combinations(
    worth: Mapping[T, float], counts: Mapping[T, int], total: int
) -> list[tuple[float, float]]:
    """Return what each combination of terms is worth, most first, and how many rows would have
    exactly these terms if terms were independent."""
    found = [(0.0, float(total))]
    for term, value in worth.items():
        share = min(1.0, counts[term] / total)  # a kept count may be slightly too high
        found = [
            either
            for value_before, rows in found
            for either in (
                (value_before, rows * (1.0 - share)),
                (value_before + value, rows * share),
            )
        ]
    return sorted(found, reverse=True)


def threshold(expected: Sequence[tuple[float, float]], wanted: float) -> float:
    """Return the threshold above which about `wanted` rows are."""
    rows = 0.0
    for value, rows_with in expected:
        rows += rows_with
        if rows >= wanted:
            return value
    return 0.0


def first_threshold(expected: Sequence[tuple[float, float]], wanted: float, limit: int) -> float:
    """Return the threshold to begin with: a higher one if the rows above it would be enough and
    those above the other far too many."""
    rows, before = 0.0, 0.0
    for value, rows_with in expected:
        if rows + rows_with > wanted * MORE_ROWS and rows >= limit:
            return before
        rows, before = rows + rows_with, value
        if rows >= wanted:
            return value
    return 0.0


def smallest_sets(worth: Mapping[T, float], least: float) -> list[tuple[T, ...]]:
    """Return the sets of terms that are together worth `least` or more, and less without any of
    their terms. `worth` has the most valuable term first."""
    terms = list(worth)
    left_from = [sum(worth[term] for term in terms[at:]) for at in range(len(terms) + 1)]

    def sets_from(start: int, need: float) -> Iterator[tuple[T, ...]]:
        for at in range(start, len(terms)):
            if left_from[at] < need:
                break
            more = need - worth[terms[at]]
            if more <= 0.0:
                yield (terms[at],)
            else:
                yield from ((terms[at], *others) for others in sets_from(at + 1, more))

    return list(sets_from(0, min(least, left_from[0]) - ALMOST_NOTHING))
