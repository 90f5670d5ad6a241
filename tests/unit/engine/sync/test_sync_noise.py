"""Noise is measured on the vectors of a space, and again only when the space has another size."""

from __future__ import annotations

import math
from array import array

import pytest

from clawmark.engine.sync.vectors import (
    FEWEST_VECTORS,
    NOISE_SAMPLE,
    fill_space,
    measure_noise,
    refresh_noise,
)
from clawmark.model.values import noise_fact
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing import HashingEmbedder
from clawmark.testing.vectors import cosine, file_of, random_vectors, unit


def put(index: SqliteStore, path: str, *texts: str) -> None:
    with index.transaction() as writer:
        writer.put_file(*file_of(path, *texts))
    fill_space(
        HashingEmbedder(dims=16),
        store=index,
        progress=lambda progress: None,
        out_of_time=lambda: False,
    )


def texts(count: int, first: int = 0) -> list[str]:
    return [f"note number {n} about subject {n * 7}" for n in range(first, first + count)]


def facts(index: SqliteStore) -> dict[str, object]:
    with index.snapshot() as reader:
        (space,) = reader.spaces()
        return reader.facts(noise_fact(space.id))


def test_the_centre_is_the_mean_of_the_vectors() -> None:
    centre, _ = measure_noise(
        [unit([1.0, 0.0]), unit([0.0, 1.0]), unit([0.0, -1.0]), unit([0.0, 1.0])]
    )
    assert list(memoryview(centre).cast("f")) == pytest.approx([0.25, 0.25])


def test_the_spread_is_the_deviation_of_the_cosines_of_pairs() -> None:
    sample = random_vectors(40, 8, seed=3)
    _, spread = measure_noise(sample)
    squares = []
    for number, one in enumerate(sample):
        others = [cosine(one, other) for at, other in enumerate(sample) if at != number]
        mean = sum(others) / len(others)
        squares += [(value - mean) ** 2 for value in others]
    assert spread == pytest.approx(math.sqrt(sum(squares) / len(squares)), abs=1e-5)


def test_the_mean_cosine_of_a_query_is_its_product_with_the_centre() -> None:
    sample, query = random_vectors(50, 8, seed=1), random_vectors(1, 8, seed=2)[0]
    centre, _ = measure_noise(sample)
    mean = sum(cosine(query, vector) for vector in sample) / len(sample)
    assert cosine(query, centre) == pytest.approx(mean, abs=1e-5)


def test_equal_vectors_have_a_spread_that_can_be_divided_by() -> None:
    _, spread = measure_noise([unit([1.0, 2.0])] * 10)
    assert spread == pytest.approx(1e-3)


def test_random_directions_spread_like_one_over_the_root_of_the_dimensions() -> None:
    _, spread = measure_noise(random_vectors(384, 64, seed=5))
    assert spread == pytest.approx(1 / 8, rel=0.05)


def test_a_space_is_measured_when_it_becomes_ready(index: SqliteStore) -> None:
    put(index, "a.md", *texts(30))
    measured = facts(index)
    assert measured["passages"] == 30
    sample = HashingEmbedder(dims=16).embed_texts(texts(30))
    centre, spread = measure_noise(sample)
    assert list(array("f", bytes.fromhex(str(measured["centre"])))) == pytest.approx(
        list(array("f", centre)), abs=1e-6
    )
    assert measured["spread"] == pytest.approx(spread, abs=1e-5)


def test_a_space_with_a_handful_of_vectors_is_not_measured(index: SqliteStore) -> None:
    put(index, "a.md", *texts(FEWEST_VECTORS - 1))
    assert facts(index) == {}
    put(index, "b.md", *texts(1, first=100))
    assert facts(index)["passages"] == FEWEST_VECTORS


def test_ordinary_changes_do_not_move_the_measure(index: SqliteStore) -> None:
    put(index, "a.md", *texts(30))
    before = facts(index)
    put(index, "b.md", *texts(14, first=100))
    assert facts(index) == before
    put(index, "b.md", *texts(5, first=200))
    assert facts(index) == before
    with index.transaction() as writer:
        writer.delete_file("b.md")
    put(index, "c.md", "one more")
    assert facts(index) == before


def test_growth_by_half_refreshes_the_measure(index: SqliteStore) -> None:
    put(index, "a.md", *texts(30))
    before = facts(index)
    put(index, "b.md", *texts(15, first=100))
    after = facts(index)
    assert after["passages"] == 45
    assert after["centre"] != before["centre"]


def test_a_space_that_has_shrunk_is_measured_again(index: SqliteStore) -> None:
    put(index, "a.md", *texts(20))
    put(index, "b.md", *texts(40, first=100))
    with index.transaction() as writer:
        writer.delete_file("b.md")
        writer.sweep()
    (space,) = _spaces(index)
    refresh_noise(index, space, 1.0)
    assert facts(index)["passages"] == 20


def test_the_noise_of_a_dropped_space_is_deleted(index: SqliteStore) -> None:
    put(index, "a.md", *texts(30))
    (space,) = _spaces(index)
    with index.transaction() as writer:
        writer.drop_space(space)
        assert writer.facts(noise_fact(space)) == {}
    refresh_noise(index, space, 1.0)
    with index.snapshot() as reader:
        assert reader.facts(noise_fact(space)) == {}


@pytest.mark.parametrize("count", [NOISE_SAMPLE + 1, 2 * NOISE_SAMPLE - 1, 3 * NOISE_SAMPLE])
def test_the_sample_is_spread_over_the_whole_space(index: SqliteStore, count: int) -> None:
    put(index, "a.md", *texts(count))
    embedded = HashingEmbedder(dims=16).embed_texts(texts(count))
    (space,) = _spaces(index)
    with index.snapshot() as reader:
        sample = set(reader.sample_vectors(space, NOISE_SAMPLE))
    assert NOISE_SAMPLE // 3 < len(sample) <= NOISE_SAMPLE
    half = count // 2
    first, second = len(sample & set(embedded[:half])), len(sample & set(embedded[half:]))
    assert abs(first - second) < len(sample) / 5


def _spaces(index: SqliteStore) -> list[int]:
    with index.snapshot() as reader:
        return [space.id for space in reader.spaces()]
