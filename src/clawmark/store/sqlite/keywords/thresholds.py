"""Estimates how many rows have which combination of terms, to choose what to rank first."""

from collections.abc import Mapping, Sequence

MORE_ROWS = 4
"""By how much the number of rows should grow from one threshold to the next."""


def combinations(
    worth: Mapping[str, float], counts: Mapping[str, int], total: int
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
