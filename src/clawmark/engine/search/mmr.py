"""Reorders candidates so that the first ones differ (maximal marginal relevance)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

# Compiled on first use: every cold search imports this module.
_UNSPACED = r"[\u0e00-\u0eff\u1780-\u17ff\u2e80-\u9fff\ua000-\ua4cf\uac00-\ud7af\uf900-\ufaff]+"


def word_set(text: str) -> frozenset[str]:
    """The words of a text in any script; pairs of characters where words are not separated by
    spaces."""
    words: set[str] = set()
    for word in re.findall(r"\w+", text.casefold()):
        run = re.search(_UNSPACED, word)
        if run is None:
            words.add(word)
        else:
            words.update(word)
            words.update(word[place : place + 2] for place in range(len(word) - 1))
    return frozenset(words)


def similarity(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of words two sets have in common (Jaccard); 0 for two empty sets."""
    if not one or not other:
        return 0.0
    common = len(one & other)
    return common / (len(one) + len(other) - common)


def diversify(
    items: Sequence[T], lambda_: float, score: Callable[[T], float], text: Callable[[T], str]
) -> list[T]:
    """Pick repeatedly the item with the best `lambda * relevance - (1 - lambda) * similarity to the
    picked ones`."""
    if lambda_ >= 1.0 or len(items) < 2:
        return sorted(items, key=score, reverse=True)
    scores = [score(item) for item in items]
    low, high = min(scores), max(scores)
    relevance = [(value - low) / (high - low) if high > low else 1.0 for value in scores]
    words = [word_set(text(item)) for item in items]
    likeness = [0.0] * len(items)
    left = list(range(len(items)))
    picked: list[int] = []
    while left:
        best = max(
            left, key=lambda i: (lambda_ * relevance[i] - (1 - lambda_) * likeness[i], scores[i])
        )
        left.remove(best)
        picked.append(best)
        for i in left:
            likeness[i] = max(likeness[i], similarity(words[best], words[i]))
    return [items[i] for i in picked]
