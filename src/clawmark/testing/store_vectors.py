"""The part of the contract of index stores that is about vectors, their cache, and rebuilds."""

from __future__ import annotations

from collections.abc import Callable

from clawmark.model.errors import IndexBusy, IndexStoreError
from clawmark.model.values import FileRow, Filters, noise_fact
from clawmark.store.base import IndexStore
from clawmark.testing.store_samples import found, put, texts_of
from clawmark.testing.vectors import file_of, fill, identity_of, random_vectors

# --- vectors and their cache ----------------------------------------------------------------------


def _chunks_are_due_in_each_space_until_they_have_a_vector(store: IndexStore) -> None:
    vectors = random_vectors(3, 8, seed=1)
    keys = fill(store, "a.md", [vectors[0], None, vectors[2]], 8)
    (late,) = put(store, "b.md", "late")
    with store.transaction() as transaction:
        other = transaction.add_space(identity_of(4, "other"))
        assert transaction.add_space(identity_of(4, "other")) == other
    with store.snapshot() as snapshot:
        first, second = snapshot.spaces()
        assert (first.identity, first.vectors, first.ready) == (identity_of(8), 2, False)
        assert (second.identity, second.vectors) == (identity_of(4, "other"), 0)
        assert snapshot.due_keys(first.id) == [late]
        assert snapshot.due_keys(second.id) == [*keys, late]
        assert (snapshot.count_due(first.id), snapshot.count_due(second.id)) == (1, 4)
        assert [chunk.text for chunk in snapshot.due_chunks(first.id, [late, 999])] == ["late"]
    with store.transaction() as transaction:
        transaction.set_ready(first.id)
        transaction.delete_file("b.md")
    with store.snapshot() as snapshot:
        assert [space.ready for space in snapshot.spaces()] == [True, False]
        assert snapshot.count_due(first.id) == 0


def _the_nearest_chunks_come_first_and_then_the_others(store: IndexStore) -> None:
    vectors = random_vectors(20, 8, seed=1)
    keys = fill(store, "a.md", vectors, 8)
    (bare,) = put(store, "b.md", "no vector yet")
    with store.snapshot() as snapshot:
        (space,) = snapshot.spaces()
        everything = snapshot.nearest(space.id, vectors[3], 100)
        some = snapshot.nearest(space.id, vectors[3], 2, [keys[3], keys[9], bare, 999_999])
        only = snapshot.nearest(space.id, vectors[3], 0, [keys[9], bare])
    assert everything[0][0] == keys[3]
    assert [cosine for _, cosine in everything] == sorted(
        (cosine for _, cosine in everything), reverse=True
    )
    assert some[:2] == everything[:2]
    assert {key for key, _ in some[2:]} == {keys[9]} - {key for key, _ in some[:2]}
    assert [key for key, _ in only] == [keys[9]]
    assert abs(only[0][1] - dict(everything)[keys[9]]) < 1e-5


def _filters_apply_to_vectors(store: IndexStore) -> None:
    vectors = random_vectors(10, 8, seed=1)
    fill(store, "a.md", vectors[:5], 8)
    keys = fill(store, "b.md", vectors[5:], 8)
    with store.snapshot() as snapshot:
        (space,) = snapshot.spaces()
        only = snapshot.within(Filters(path="b.md")).nearest(space.id, vectors[0], 100)
        assert sorted(key for key, _ in only) == keys


def _vectors_of_the_wrong_size_are_refused(store: IndexStore) -> None:
    fill(store, "a.md", random_vectors(2, 8, seed=1), 8)
    for attempt in (
        lambda: fill(store, "b.md", random_vectors(1, 9, seed=1), 8),
        lambda: _nearest_of_wrong_size(store),
    ):
        try:
            attempt()
        except IndexStoreError:
            continue
        raise AssertionError("A vector of another size was accepted.")


def _nearest_of_wrong_size(store: IndexStore) -> None:
    with store.snapshot() as snapshot:
        snapshot.nearest(snapshot.spaces()[0].id, random_vectors(1, 9, seed=1)[0], 5)


def _a_late_vector_of_a_changed_chunk_is_only_cached(store: IndexStore) -> None:
    old = file_of("a.md", "before")
    (vector,) = random_vectors(1, 8, seed=1)
    with store.transaction() as transaction:
        (key,) = transaction.put_file(*old)
        space = transaction.add_space(identity_of(8)).id
    (newer,) = put(store, "a.md", "after")
    with store.transaction() as transaction:
        transaction.put_vectors(
            space, [(key, old[1][0].hash, vector), (newer, old[1][0].hash, vector)]
        )
    with store.snapshot() as snapshot:
        assert snapshot.nearest(space, vector, 5) == []
        assert snapshot.due_keys(space) == [newer]
    (again,) = put(store, "a.md", "before")
    with store.snapshot() as snapshot:
        assert [chunk.vector for chunk in snapshot.due_chunks(space, [again])] == [vector]


def _a_cached_vector_is_offered_for_the_same_text(store: IndexStore) -> None:
    vectors = random_vectors(2, 8, seed=1)
    row, chunks, words = file_of("a.md", "one", "two")
    with store.transaction() as transaction:
        transaction.cache_vectors(identity_of(8), {chunks[0].hash: vectors[0]})
        transaction.cache_vectors(identity_of(8, "other"), {chunks[1].hash: vectors[1]})
        transaction.put_file(row, chunks, words)
        space = transaction.add_space(identity_of(8)).id
    with store.snapshot() as snapshot:
        due = snapshot.due_chunks(space, snapshot.due_keys(space))
    assert [(chunk.hash, chunk.vector) for chunk in due] == [
        (chunks[0].hash, vectors[0]),
        (chunks[1].hash, None),
    ]


def _trimming_the_cache_keeps_vectors_in_use(store: IndexStore) -> None:
    vectors = random_vectors(3, 8, seed=1)
    keys = fill(store, "a.md", vectors, 8)
    store.trim_cache()
    with store.snapshot() as snapshot:
        (space,) = snapshot.spaces()
        assert snapshot.nearest(space.id, vectors[1], 1)[0][0] == keys[1]
        assert sorted(snapshot.sample_vectors(space.id, 100)) == sorted(vectors)
        assert len(snapshot.sample_vectors(space.id, 2)) <= 2


def _a_dropped_space_loses_its_noise_and_keeps_its_vectors_cached(store: IndexStore) -> None:
    vectors = random_vectors(3, 8, seed=1)
    keys = fill(store, "a.md", vectors, 8)
    with store.transaction() as transaction:
        (space,) = transaction.spaces()
        transaction.set_facts(noise_fact(space.id), {"centre": "00", "passages": 4})
    with store.snapshot() as snapshot:
        assert snapshot.facts(noise_fact(space.id)) == {"centre": "00", "passages": 4}
        assert snapshot.facts(noise_fact(space.id + 1)) == {}
    with store.transaction() as transaction:
        transaction.drop_space(space.id)
    with store.snapshot() as snapshot:
        assert snapshot.spaces() == ()
        assert snapshot.facts(noise_fact(space.id)) == {}
    with store.transaction() as transaction:
        again = transaction.add_space(identity_of(8)).id
        due = transaction.due_chunks(again, keys)
    assert again != space.id
    assert [chunk.vector for chunk in due] == vectors


# --- rebuilds -------------------------------------------------------------------------------------


def _a_rebuild_is_invisible_until_it_is_published(store: IndexStore) -> None:
    for name in ("one", "two"):
        put(store, f"{name}.md", f"old {name}", f"old {name} again")
    number = store.begin_rebuild({"chunker": "2"})
    for name in ("one", "two"):
        put(store, f"{name}.md", f"new {name}", building=number)
    with store.snapshot() as snapshot:
        assert snapshot.building == number > 0
        before = snapshot.generation
        assert len(found(snapshot, "old")) == 4
        assert found(snapshot, "new") == []
        assert snapshot.files(which="rebuilt").keys() == {"one.md", "two.md"}
        assert snapshot.count_chunks() == 4
    with store.transaction() as transaction:
        assert transaction.publish(number) == []
    assert texts_of(store, "old", "new") == ["new one", "new two"]
    with store.snapshot() as snapshot:
        assert snapshot.generation > before
        assert snapshot.building == 0
        assert snapshot.files(which="rebuilt") == {}
        assert snapshot.facts("identity") == {"chunker": "2"}
    store.tidy(force=True)
    assert texts_of(store, "old", "new") == ["new one", "new two"]


def _a_rebuild_that_lacks_files_is_not_published(store: IndexStore) -> None:
    put(store, "one.md", "old one")
    put(store, "two.md", "old two")
    number = store.begin_rebuild({"chunker": "2"})
    put(store, "one.md", "new one", building=number)
    with store.transaction() as transaction:
        missing = transaction.publish(number)
        assert [row.path for row in missing] == ["two.md"]
    assert texts_of(store, "old", "new") == ["old one", "old two"]
    row, chunks, words = file_of("two.md", "new two")
    store.put_large_file(row, chunks, lambda _: words, building=number)
    with store.transaction() as transaction:
        assert transaction.publish(number) == []
    assert texts_of(store, "old", "new") == ["new one", "new two"]


def _changes_during_a_rebuild_are_visible_at_once(store: IndexStore) -> None:
    for name in ("one", "two", "three"):
        put(store, f"{name}.md", f"old {name}")
    number = store.begin_rebuild({"chunker": "2"})
    for name in ("one", "two", "three"):
        put(store, f"{name}.md", f"new {name}", building=number)
    put(store, "one.md", "fresh one")
    with store.transaction() as transaction:
        transaction.delete_file("two.md")
    assert texts_of(store, "old", "new", "fresh") == ["fresh one", "old three"]
    with store.transaction() as transaction:
        missing: list[FileRow] = transaction.publish(number)
        assert [row.path for row in missing] == ["one.md"]
        transaction.put_file(*file_of("one.md", "rebuilt one"), building=number)
        assert transaction.publish(number) == []
    assert texts_of(store, "old", "new", "fresh", "rebuilt") == ["new three", "rebuilt one"]


def _a_rebuild_is_continued_for_the_same_identity_only(store: IndexStore) -> None:
    put(store, "one.md", "old one")
    first = store.begin_rebuild({"chunker": "2", "sources": ("memory",)})
    put(store, "one.md", "new one", building=first)
    assert store.begin_rebuild({"chunker": "2", "sources": ("memory",)}) == first
    with store.snapshot() as snapshot:
        assert snapshot.files(which="rebuilt").keys() == {"one.md"}
    second = store.begin_rebuild({"chunker": "3"})
    assert second != first
    try:
        put(store, "one.md", "lost one", building=first)
    except IndexBusy:
        pass
    else:
        raise AssertionError("An abandoned rebuild accepted a file.")
    with store.transaction() as transaction:
        assert transaction.publish(first) == []
    assert texts_of(store, "old", "new", "lost") == ["old one"]
    put(store, "one.md", "third one", building=second)
    with store.transaction() as transaction:
        assert transaction.publish(second) == []
    assert texts_of(store, "old", "new", "lost", "third") == ["third one"]


def _chunks_of_a_rebuild_are_due_before_it_is_published(store: IndexStore) -> None:
    fill(store, "a.md", random_vectors(2, 8, seed=1), 8)
    number = store.begin_rebuild({"chunker": "2"})
    keys = put(store, "a.md", "new text", building=number)
    (vector,) = random_vectors(1, 8, seed=2)
    with store.transaction() as transaction:
        (space,) = transaction.spaces()
        assert transaction.due_keys(space.id) == keys
        due = transaction.due_chunks(space.id, keys)
        transaction.put_vectors(space.id, [(due[0].key, due[0].hash, vector)])
    with store.snapshot() as snapshot:
        assert snapshot.count_due(space.id) == 0
        assert keys[0] not in dict(snapshot.nearest(space.id, vector, 10))
    with store.transaction() as transaction:
        transaction.publish(number)
    with store.snapshot() as snapshot:
        assert [key for key, _ in snapshot.nearest(space.id, vector, 10)] == keys
        assert snapshot.count_due(space.id) == 0


vector_checks: tuple[Callable[[IndexStore], None], ...] = (
    _chunks_are_due_in_each_space_until_they_have_a_vector,
    _the_nearest_chunks_come_first_and_then_the_others,
    _filters_apply_to_vectors,
    _vectors_of_the_wrong_size_are_refused,
    _a_late_vector_of_a_changed_chunk_is_only_cached,
    _a_cached_vector_is_offered_for_the_same_text,
    _trimming_the_cache_keeps_vectors_in_use,
    _a_dropped_space_loses_its_noise_and_keeps_its_vectors_cached,
    _a_rebuild_is_invisible_until_it_is_published,
    _a_rebuild_that_lacks_files_is_not_published,
    _changes_during_a_rebuild_are_visible_at_once,
    _a_rebuild_is_continued_for_the_same_identity_only,
    _chunks_of_a_rebuild_are_due_before_it_is_published,
)
