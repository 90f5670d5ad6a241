"""The embedding cache: nothing is embedded twice, and the least recently used goes first."""

from __future__ import annotations

from typing import Protocol

import pytest

from clawmark.model.errors import IndexStoreError
from clawmark.model.values import Vector
from clawmark.store.sqlite.store import Index
from clawmark.testing.vectors import file_of, fill, identity_of, random_vectors


class Clock(Protocol):
    def pass_minutes(self, minutes: int) -> None: ...


def cache_texts(index: Index, count: int, *, dims: int = 8, start: int = 0) -> dict[str, Vector]:
    """Vectors of texts that no chunk uses any more, by hash."""
    vectors = random_vectors(count, dims, seed=start + 1)
    file = file_of("gone.md", *[f"gone {start + number}" for number in range(count)])
    with index.writing() as writer:
        keys = writer.put_file(*file)
        hashes = [chunk.hash for chunk in file[1]]
        writer.put_vectors(
            writer.space(identity_of(dims)).id, list(zip(keys, hashes, vectors, strict=True))
        )
        writer.drop_file("gone.md")
    return dict(zip(hashes, vectors, strict=True))


def test_a_vector_is_found_by_the_hash_of_its_text(index: Index) -> None:
    made = cache_texts(index, 3)
    with index.reading() as reader:
        assert reader.cached(identity_of(8), [*made, "ab" * 32]) == made
        assert reader.cached(identity_of(8, "other"), list(made)) == {}
        assert reader.state().cache_entries == 3


def test_another_number_of_dimensions_is_another_vector(index: Index) -> None:
    made = cache_texts(index, 2, dims=8)
    with index.reading() as reader:
        assert reader.cached(identity_of(12), list(made)) == {}
    wider = cache_texts(index, 2, dims=12)
    with index.reading() as reader:
        assert reader.cached(identity_of(12), list(wider)) == wider
        assert reader.state().cache_entries == 2


def test_the_least_recently_used_vector_goes_first(index: Index, clock: Clock) -> None:
    made = list(cache_texts(index, 10))
    clock.pass_minutes(5)
    with index.writing() as writer:
        assert writer.cached(identity_of(8), made[:3]).keys() == set(made[:3])
    clock.pass_minutes(5)
    newer = list(cache_texts(index, 4, start=100))
    assert index.evict() == 4
    assert index.evict() == 0
    with index.reading() as reader:
        kept = reader.cached(identity_of(8), made + newer)
        assert reader.state().cache_entries == 10
    assert kept.keys() == {*made[:3], *made[7:], *newer}


def test_looking_without_writing_does_not_count_as_use(index: Index, clock: Clock) -> None:
    made = list(cache_texts(index, 10))
    clock.pass_minutes(5)
    with index.reading() as reader:
        reader.cached(identity_of(8), made[:1])
    cache_texts(index, 1, start=100)
    index.evict()
    with index.writing() as writer:
        assert made[0] not in writer.cached(identity_of(8), made)


def test_a_vector_in_use_is_never_evicted(index: Index, clock: Clock) -> None:
    vectors = random_vectors(14, 8, seed=1)
    keys = fill(index, "used.md", vectors, 8)
    clock.pass_minutes(5)
    cache_texts(index, 3, start=100)
    assert index.evict() == 3
    assert index.evict() == 0
    with index.reading() as reader:
        assert reader.state().cache_entries == 14
        assert [key for key, _ in reader.vectors(1, vectors[3], 1)] == [keys[3]]
    with index.writing() as writer:
        writer.drop_file("used.md")
    cache_texts(index, 1, start=200)
    assert index.evict() == 5


def test_text_that_moves_to_another_file_is_not_due_with_the_cache_in_hand(index: Index) -> None:
    made = cache_texts(index, 1)
    with index.writing() as writer:
        writer.put_file(*file_of("moved.md", "gone 0"))
        ((key, text, _, vector),) = writer.due_rows(1, writer.due_keys(1))
        writer.put_vectors(1, [(key, text, vector)])
        assert writer.count_due_vectors(1) == 0
        assert writer.vectors(1, made[text], 1)[0][0] == key


def test_a_vector_for_a_chunk_that_changed_meanwhile_is_only_cached(index: Index) -> None:
    old, new = file_of("a.md", "before"), file_of("a.md", "after")
    vector = random_vectors(1, 8, seed=1)[0]
    with index.writing() as writer:
        (key,) = writer.put_file(*old)
        space = writer.space(identity_of(8)).id
    with index.writing() as writer:
        (newer,) = writer.put_file(*new)
    with index.writing() as writer:
        writer.put_vectors(space, [(key, old[1][0].hash, vector)])
        assert writer.vectors(space, vector, 5) == []
        assert writer.due_keys(space) == [newer]
        assert writer.cached(identity_of(8), [old[1][0].hash]) == {old[1][0].hash: vector}


def test_a_vector_for_a_key_of_a_deleted_index_is_only_cached(index: Index) -> None:
    was, now = (
        file_of("a.md", "in the index that was deleted"),
        file_of("b.md", "in the one that took its place"),
    )
    vector = random_vectors(1, 8, seed=1)[0]
    with index.writing() as writer:
        (key,) = writer.put_file(*now)
        space = writer.space(identity_of(8)).id
        writer.put_vectors(space, [(key, was[1][0].hash, vector)])
        assert writer.vectors(space, vector, 5) == []
        assert writer.due_keys(space) == [key]


def test_a_vector_that_comes_twice_counts_once(index: Index) -> None:
    vectors = random_vectors(3, 8, seed=1)
    keys = fill(index, "a.md", vectors, 8)
    with index.writing() as writer:
        rows = writer.chunks(keys)
        writer.put_vectors(
            1, [(key, rows[key].hash, vector) for key, vector in zip(keys, vectors, strict=True)]
        )
    with index.reading() as reader:
        assert [space.vectors for space in reader.state().spaces] == [3]
        assert len(reader.vectors(1, vectors[0], 10)) == 3


def test_a_vector_of_the_wrong_size_is_refused(index: Index) -> None:
    with pytest.raises(IndexStoreError, match="does not have 8 numbers"):
        fill(index, "a.md", random_vectors(1, 9, seed=1), 8)


def test_similarities_are_exact_and_skip_what_has_no_vector(index: Index) -> None:
    vectors = random_vectors(3, 8, seed=1)
    keys = fill(index, "a.md", vectors, 8)
    with index.writing() as writer:
        (bare,) = writer.put_file(*file_of("b.md", "no vector yet"))
    with index.reading() as reader:
        near = reader.similarities(1, vectors[1], [*keys, bare, 999_999])
    assert near.keys() == set(keys)
    assert near[keys[1]] == pytest.approx(1.0, abs=1e-6)
