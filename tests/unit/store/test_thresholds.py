"""Which sets of terms a chunk must have to reach a threshold."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from clawmark.store.thresholds import smallest_sets


@pytest.mark.parametrize("seed", range(20))
def test_a_chunk_reaches_the_threshold_exactly_if_it_has_one_of_the_sets(seed: int) -> None:
    chance = random.Random(seed)
    values = sorted((chance.uniform(0.1, 5.0) for _ in range(6)), reverse=True)
    worth = dict(enumerate(values))
    least = chance.uniform(0.1, sum(values))
    sets = [set(terms) for terms in smallest_sets(worth, least)]
    for size in range(len(worth) + 1):
        for terms in combinations(worth, size):
            reaches = sum(worth[term] for term in terms) >= least
            assert reaches == any(some <= set(terms) for some in sets), terms


def test_the_sets_have_no_term_that_is_not_needed() -> None:
    assert smallest_sets({"a": 3.0, "b": 2.0, "c": 1.0}, 3.0) == [("a",), ("b", "c")]


def test_a_threshold_that_is_never_reached_asks_for_every_term() -> None:
    assert smallest_sets({"a": 3.0, "b": 2.0}, 9.0) == [("a", "b")]
