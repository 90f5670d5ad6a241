"""The embedding cache: nothing is embedded twice, and the least recently used vector is evicted
first."""

from __future__ import annotations

from typing import Protocol

import pytest

from clawmark.model.errors import IndexStoreError
from clawmark.model.values import Vector
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing.vectors import file_of, fill, identity_of, random_vectors


class Clock(Protocol):
    def pass_minutes(self, minutes: int) -> None: ...


def cache_texts(
    index: SqliteStore, count: int, *, dims: int = 8, start: int = 0
) -> dict[str, Vector]:
    """Cache vectors of texts that no chunk uses, and return them by hash."""
    vectors = random_vectors(count, dims, seed=start + 1)
    file = file_of("gone.md", *[f"gone {start + number}" for number in range(count)])
    with index.transaction() as writer:
        keys = writer.put_file(*file)
        hashes = [chunk.hash for chunk in file[1]]
        writer.put_vectors(
            writer.add_space(identity_of(dims)).id, list(zip(keys, hashes, vectors, strict=True))
        )
        writer.delete_file("gone.md")
    return dict(zip(hashes, vectors, strict=True))


def test_a_vector_is_found_by_the_hash_of_its_text(index: SqliteStore) -> None:
    made = cache_texts(index, 3)
    with index.snapshot() as reader:
        assert reader.cached(identity_of(8), [*made, "ab" * 32]) == made
        assert reader.cached(identity_of(8, "other"), list(made)) == {}
        assert reader.state().cache_entries == 3


def test_another_number_of_dimensions_is_another_vector(index: SqliteStore) -> None:
    made = cache_texts(index, 2, dims=8)
    with index.snapshot() as reader:
        assert reader.cached(identity_of(12), list(made)) == {}
    wider = cache_texts(index, 2, dims=12)
    with index.snapshot() as reader:
        assert reader.cached(identity_of(12), list(wider)) == wider
        assert reader.state().cache_entries == 2


def test_the_least_recently_used_vector_goes_first(index: SqliteStore, clock: Clock) -> None:
    made = list(cache_texts(index, 10))
    clock.pass_minutes(5)
    with index.transaction() as writer:
        assert writer.cached(identity_of(8), made[:3]).keys() == set(made[:3])
    clock.pass_minutes(5)
    newer = list(cache_texts(index, 4, start=100))
    assert index.trim_cache() == 4
    assert index.trim_cache() == 0
    with index.snapshot() as reader:
        kept = reader.cached(identity_of(8), made + newer)
        assert reader.state().cache_entries == 10
    assert kept.keys() == {*made[:3], *made[7:], *newer}


def test_reading_the_cache_in_a_snapshot_does_not_count_as_use(
    index: SqliteStore, clock: Clock
) -> None:
    made = list(cache_texts(index, 10))
    clock.pass_minutes(5)
    with index.snapshot() as reader:
        reader.cached(identity_of(8), made[:1])
    cache_texts(index, 1, start=100)
    index.trim_cache()
    with index.transaction() as writer:
        assert made[0] not in writer.cached(identity_of(8), made)


def test_a_vector_in_use_is_never_evicted(index: SqliteStore, clock: Clock) -> None:
    vectors = random_vectors(14, 8, seed=1)
    keys = fill(index, "used.md", vectors, 8)
    clock.pass_minutes(5)
    cache_texts(index, 3, start=100)
    assert index.trim_cache() == 3
    assert index.trim_cache() == 0
    with index.snapshot() as reader:
        assert reader.state().cache_entries == 14
        assert [key for key, _ in reader.nearest(1, vectors[3], 1)] == [keys[3]]
    with index.transaction() as writer:
        writer.delete_file("used.md")
    cache_texts(index, 1, start=200)
    assert index.trim_cache() == 5


def test_text_that_moves_to_another_file_is_not_embedded_again(
    index: SqliteStore,
) -> None:
    made = cache_texts(index, 1)
    with index.transaction() as writer:
        writer.put_file(*file_of("moved.md", "gone 0"))
        ((key, text, _, vector),) = writer.due_chunks(1, writer.due_keys(1))
        writer.put_vectors(1, [(key, text, vector)])
        assert writer.count_due(1) == 0
        assert writer.nearest(1, made[text], 1)[0][0] == key


def test_a_vector_for_a_key_of_a_deleted_index_is_only_cached(index: SqliteStore) -> None:
    was, now = (
        file_of("a.md", "in the index that was deleted"),
        file_of("b.md", "in the one that took its place"),
    )
    vector = random_vectors(1, 8, seed=1)[0]
    with index.transaction() as writer:
        (key,) = writer.put_file(*now)
        space = writer.add_space(identity_of(8)).id
        writer.put_vectors(space, [(key, was[1][0].hash, vector)])
        assert writer.nearest(space, vector, 5) == []
        assert writer.due_keys(space) == [key]


def test_a_vector_stored_twice_counts_once(index: SqliteStore) -> None:
    vectors = random_vectors(3, 8, seed=1)
    keys = fill(index, "a.md", vectors, 8)
    with index.transaction() as writer:
        rows = writer.chunks(keys)
        writer.put_vectors(
            1, [(key, rows[key].hash, vector) for key, vector in zip(keys, vectors, strict=True)]
        )
    with index.snapshot() as reader:
        assert [space.vectors for space in reader.state().spaces] == [3]
        assert len(reader.nearest(1, vectors[0], 10)) == 3


def test_a_vector_of_the_wrong_size_is_refused(index: SqliteStore) -> None:
    with pytest.raises(IndexStoreError, match="does not have 8 numbers"):
        fill(index, "a.md", random_vectors(1, 9, seed=1), 8)
