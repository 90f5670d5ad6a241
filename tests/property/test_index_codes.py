"""Codes and candidates: rounding is exact, and the best scores are never lost."""

from __future__ import annotations

import math
from array import array

from hypothesis import given
from hypothesis import strategies as st

from clawmark.store.similarity import dot_products, floats_of
from clawmark.store.sqlite.vectors.codes import (
    PIECE,
    best_positions,
    query_int8,
    scale_for,
    to_int8,
)
from clawmark.testing.vectors import cosine, random_vectors, unit

COMPONENTS = st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=40).filter(
    lambda v: math.hypot(*v) > 1e-3
)


@given(COMPONENTS)
def test_a_code_is_the_component_in_steps_and_never_wraps_around(numbers: list[float]) -> None:
    vector = unit(numbers)
    scale = scale_for(len(numbers))
    codes = array("b", to_int8(vector, scale))
    for code, value in zip(codes, memoryview(vector).cast("f"), strict=True):
        step = max(-127.0, min(127.0, value * scale))
        assert abs(code - step) <= 0.5 + 1e-3


@given(st.floats(0.62, 1.0), st.sampled_from([256, 384, 1536]))
def test_a_component_beyond_the_limit_is_clipped(large: float, dims: int) -> None:
    rest = math.sqrt(max(0.0, 1.0 - large * large) / (dims - 1))
    for sign in (1.0, -1.0):
        code = array(
            "b",
            to_int8(array("f", [sign * large] + [rest] * (dims - 1)).tobytes(), scale_for(dims)),
        )
        limit = 127.0 / scale_for(dims)
        assert code[0] == sign * min(127, round(large / limit * 127))


def test_many_vectors_have_the_codes_they_have_alone() -> None:
    vectors = random_vectors(PIECE // 100 + 7, 100, seed=1)
    alone = b"".join([to_int8(vector, scale_for(100)) for vector in vectors])
    assert to_int8(b"".join(vectors), scale_for(100)) == alone
    assert to_int8(b"", 1.0) == b""


@given(COMPONENTS)
def test_a_query_uses_the_whole_range(numbers: list[float]) -> None:
    code, scale = query_int8(unit(numbers))
    assert max(map(abs, array("b", code))) == 127
    assert scale >= 127.0


@given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=300), st.integers(1, 50))
def test_the_highest_scores_are_among_the_positions(scores: list[float], wanted: int) -> None:
    places = best_positions(floats_of(array("f", scores)), 100.0, wanted)
    assert len(set(places)) == len(places) >= min(wanted, len(scores))
    left = set(range(len(scores))) - set(places)
    # A level is a 256th of the range, so what is left out is at most one level better than the
    # worst that is in.
    assert all(scores[out] <= min(scores[place] for place in places) + 1.0 for out in left)


def test_no_better_score_is_left_out_of_many() -> None:
    scores = [math.sin(number * 0.37) * (number % 101) for number in range(50_000)]
    places = best_positions(floats_of(array("f", scores)), 101.0, 40)
    assert set(sorted(range(len(scores)), key=scores.__getitem__, reverse=True)[:40]) <= set(places)
    assert len(places) < 2500


@given(st.integers(0, 10_000), st.integers(1, 64))
def test_dot_products_are_cosines(seed: int, dims: int) -> None:
    query, *vectors = random_vectors(4, dims, seed=seed)
    for score, vector in zip(dot_products(query, vectors), vectors, strict=True):
        assert abs(score - cosine(query, vector)) < 1e-5
