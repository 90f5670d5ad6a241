"""The check that every vector of a local model passes before it is stored."""

from __future__ import annotations

import math
from array import array

import pytest

from clawmark.embed.base import check_vectors
from clawmark.model.errors import EmbeddingRejected
from clawmark.model.values import Identity, Vector
from clawmark.testing.vectors import random_vectors

IDENTITY = Identity(provider="test", model="model", provider_key="0" * 64, dims=4)


def vector(*numbers: float) -> Vector:
    return array("f", numbers).tobytes()


GOOD = vector(1, 0, 0, 0)


def test_good_vectors_of_any_length_pass() -> None:
    check_vectors([], 0, IDENTITY)
    check_vectors([GOOD], 1, IDENTITY)
    check_vectors(
        [GOOD, vector(1e30, 0, 0, 0), vector(1e-5, 0, 0, 0), vector(1, 2, 3, 4)], 4, IDENTITY
    )
    check_vectors(random_vectors(500, 48, seed=1), 500, IDENTITY._replace(dims=48))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e-9, 0.0])
@pytest.mark.parametrize("place", [0, 1, 99])
def test_one_bad_number_among_many_is_found(bad: float, place: int) -> None:
    vectors = [GOOD] * 100
    vectors[place] = vector(0, bad, 0, 0)
    with pytest.raises(EmbeddingRejected, match=f"unusable vector for text {place + 1}\\."):
        check_vectors(vectors, 100, IDENTITY)


@pytest.mark.parametrize(
    ("vectors", "expected", "why"),
    [
        ([GOOD], 2, "1 vectors for 2 texts"),
        ([GOOD, GOOD], 1, "2 vectors for 1 texts"),
        ([GOOD, vector(1, 0, 0)], 2, "a vector of 3 numbers instead of 4"),
        ([vector(1)], 1, "a vector of 1 numbers instead of 4"),
        ([b""], 1, "a vector of 0 numbers instead of 4"),
    ],
)
def test_a_wrong_number_of_vectors_or_numbers_is_refused(
    vectors: list[Vector], expected: int, why: str
) -> None:
    with pytest.raises(EmbeddingRejected, match=why):
        check_vectors(vectors, expected, IDENTITY)


def test_a_model_without_dimensions_has_no_vectors() -> None:
    with pytest.raises(EmbeddingRejected, match="unusable"):
        check_vectors([b""], 1, IDENTITY._replace(dims=0))
