"""Byte-pair merging, which both tokenizers share: characters in, pieces out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

NEVER = 1 << 30
"""The rank of a pair that does not merge."""


def merge(parts: list[str], rank: Callable[[str, str], int]) -> list[str]:
    """Join neighbours, lowest rank first and leftmost among equals, until none of the pairs may
    merge.
    """
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
