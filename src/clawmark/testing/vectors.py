"""What every vector engine must do, as checks that anyone can run.

Each check takes an empty `SqliteStore` and raises if it fails:

    @pytest.mark.parametrize("check", vector_index_contract)
    def test_contract(check, tmp_path):
        check(SqliteStore(str(tmp_path / "index.sqlite"), vector_engine="blocks"))

The module also makes the small files and vectors for tests of the index."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256

from clawmark.model.documents import Chunk
from clawmark.model.errors import IndexStoreError
from clawmark.model.values import FileRow, Filters, Identity, Vector
from clawmark.store.base import IndexStore
from clawmark.store.sqlite.store import SqliteStore

PutFile = tuple[FileRow, list[Chunk], list[tuple[str, str]]]


def unit(numbers: Iterable[float]) -> Vector:
    """Normalize numbers to a unit vector."""
    values = list(numbers)
    length = math.hypot(*values)
    return array("f", [value / length for value in values]).tobytes()


def random_vectors(count: int, dims: int, seed: int) -> list[Vector]:
    """Return random unit vectors, the same for the same seed."""
    chance = random.Random(seed)
    return [unit(chance.gauss(0.0, 1.0) for _ in range(dims)) for _ in range(count)]


def cosine(one: Vector, other: Vector) -> float:
    """Compute the cosine of two unit vectors in plain Python."""
    return sum(
        a * b for a, b in zip(memoryview(one).cast("f"), memoryview(other).cast("f"), strict=True)
    )


def file_of(path: str, *texts: str, heading: str = "", stamp: int = 1) -> PutFile:
    """Return the arguments of `put_file` for a file with one chunk per text."""
    chunks = [
        Chunk(
            start_line=number,
            end_line=number,
            text=text,
            hash=sha256(text.encode()).hexdigest(),
            heading=heading,
        )
        for number, text in enumerate(texts, 1)
    ]
    whole = "\n".join(texts).encode()
    row = FileRow(
        path=path,
        source="memory",
        hash=sha256(whole).hexdigest(),
        size=len(whole),
        mtime_ns=stamp,
        inode=stamp,
        device=1,
        seen_ns=stamp,
        chunks=len(chunks),
    )
    return row, chunks, [(chunk.text, heading) for chunk in chunks]


def identity_of(dims: int, model: str = "test") -> Identity:
    """Return the identity of an embedder."""
    return Identity(provider="test", model=model, provider_key="0" * 64, dims=dims)


def fill(
    index: IndexStore,
    path: str,
    vectors: Sequence[Vector | None],
    dims: int,
    *,
    model: str = "test",
) -> list[int]:
    """Index a file with one chunk per vector and return the chunk keys; None means not covered."""
    file = file_of(path, *[f"{path} passage {number}" for number in range(len(vectors))])
    with index.transaction() as writer:
        keys = writer.put_file(*file)
        space = writer.add_space(identity_of(dims, model)).id
        writer.put_vectors(
            space, list(zip(keys, [chunk.hash for chunk in file[1]], vectors, strict=True))
        )
    return keys


def ranking(index: SqliteStore, query: Vector, limit: int, space: int = 1) -> list[int]:
    """Return the keys of the nearest chunks in order."""
    with index.snapshot() as reader:
        return [key for key, _ in reader.nearest(space, query, limit)]


def _the_best_are_found_with_their_exact_cosines(index: SqliteStore) -> None:
    vectors = random_vectors(700, 48, seed=1)
    keys = fill(index, "a.md", vectors, 48)
    for query in random_vectors(8, 48, seed=2):
        expected = sorted(
            ((cosine(query, vector), -key) for key, vector in zip(keys, vectors, strict=True)),
            reverse=True,
        )
        with index.snapshot() as reader:
            found = reader.nearest(1, query, 20)
        assert [key for key, _ in found] == [-key for _, key in expected[:20]]
        assert all(
            abs(score - truth) < 1e-5
            for (_, score), (truth, _) in zip(found, expected, strict=False)
        )


def _a_filter_never_costs_results(index: SqliteStore) -> None:
    query = unit([1.0, 0.0, 0.0, 0.0])
    near = [unit([1.0, number / 1e5, 0.0, 0.0]) for number in range(4500)]
    far = [unit([-1.0, number / 1e3, 0.0, 0.0]) for number in range(2300)]
    fill(index, "near.md", near, 4)
    keys = fill(index, "many.md", far, 4)
    few = fill(index, "few.md", far[:3], 4)
    best = sorted(range(2300), key=lambda number: (-cosine(query, far[number]), number))
    with index.snapshot() as reader:
        many = reader.within(Filters(path="many.md")).nearest(1, query, 20)
        assert (
            sorted(key for key, _ in reader.within(Filters(path="few.md")).nearest(1, query, 20))
            == few
        )
        assert reader.within(Filters(path="none.md")).nearest(1, query, 20) == []
    assert [key for key, _ in many] == [keys[number] for number in best[:20]]


def _asking_for_more_than_there_is_gives_all_of_it(index: SqliteStore) -> None:
    keys = fill(index, "a.md", random_vectors(5, 16, seed=3), 16)
    assert sorted(ranking(index, random_vectors(1, 16, seed=4)[0], 100)) == keys


def _a_deleted_file_is_never_found_again(index: SqliteStore) -> None:
    vectors = random_vectors(300, 16, seed=5)
    kept = fill(index, "kept.md", vectors[:150], 16)
    gone = fill(index, "gone.md", vectors[150:], 16)
    assert set(ranking(index, vectors[200], 300)) == {*kept, *gone}
    with index.transaction() as writer:
        writer.delete_file("gone.md")
    assert set(ranking(index, vectors[200], 300)) == set(kept)


def _near_copies_of_a_replaced_text_do_not_crowd_out_the_rest(index: SqliteStore) -> None:
    others = fill(index, "others.md", random_vectors(400, 16, seed=6), 16)
    query = random_vectors(1, 16, seed=7)[0]
    for _ in range(60):
        latest = fill(index, "daily.md", [query], 16)
    found = ranking(index, query, 10)
    assert found[0] == latest[0]
    assert len(found) == 10
    assert set(found[1:]) <= set(others)


def _a_text_that_is_not_covered_is_neither_found_nor_due(index: SqliteStore) -> None:
    vectors = random_vectors(3, 16, seed=8)
    first, second, third = fill(index, "a.md", [vectors[0], None, vectors[2]], 16)
    assert sorted(ranking(index, vectors[0], 10)) == [first, third]
    with index.snapshot() as reader:
        assert reader.count_due(1) == 0
        assert reader.due_keys(1) == []
        only = reader.nearest(1, vectors[0], 0, also=[first, second])
        assert [key for key, _ in only] == [first]
    with index.transaction() as writer:
        writer.delete_file("a.md")
        assert writer.count_due(1) == 0


def _spaces_do_not_mix(index: SqliteStore) -> None:
    narrow = fill(index, "a.md", random_vectors(4, 8, seed=9), 8, model="narrow")
    wide = fill(index, "b.md", random_vectors(4, 24, seed=10), 24, model="wide")
    assert sorted(ranking(index, random_vectors(1, 8, seed=11)[0], 10, space=1)) == narrow
    assert sorted(ranking(index, random_vectors(1, 24, seed=11)[0], 10, space=2)) == wide
    with index.snapshot() as reader:
        assert reader.due_keys(1) == wide
        try:
            reader.nearest(1, random_vectors(1, 24, seed=12)[0], 10)
        except IndexStoreError:
            return
    raise AssertionError("A query of another size was answered.")


def _the_same_text_in_two_files_is_found_twice(index: SqliteStore) -> None:
    vector = random_vectors(1, 16, seed=13)[0]
    keys = []
    with index.transaction() as writer:
        space = writer.add_space(identity_of(16)).id
        for path in ("a.md", "b.md"):
            file = file_of(path, "the same words")
            keys += writer.put_file(*file)
            writer.put_vectors(space, [(keys[-1], file[1][0].hash, vector)])
    assert ranking(index, vector, 10) == keys
    with index.snapshot() as reader:
        assert reader.state().cache_entries == 1


def _a_rebuild_hides_its_vectors_until_it_is_published(index: SqliteStore) -> None:
    vectors = random_vectors(200, 16, seed=14)
    old = fill(index, "a.md", vectors, 16)
    file = file_of("a.md", *[f"new passage {number}" for number in range(200)])
    with index.transaction() as writer:
        building = writer.begin_rebuild()
        new = writer.put_file(*file, building=building)
        writer.put_vectors(
            1,
            [
                (key, chunk.hash, vector)
                for key, chunk, vector in zip(new, file[1], vectors, strict=True)
            ],
        )
    best_old, best_new = old[50], new[50]
    assert ranking(index, vectors[50], 3)[0] == best_old
    assert set(ranking(index, vectors[50], 200)) == set(old)
    with index.transaction() as writer:
        writer.publish(building)
    assert ranking(index, vectors[50], 3)[0] == best_new
    assert set(ranking(index, vectors[50], 200)) == set(new)
    swept = 1
    while swept:
        with index.transaction() as writer:
            swept = writer.sweep()
    assert set(ranking(index, vectors[50], 200)) == set(new)


def _a_vector_along_one_axis_is_found_first(index: SqliteStore) -> None:
    vectors = [
        *random_vectors(200, 100, seed=15),
        unit([1.0] + [0.0] * 99),
        unit([0.99] + [0.01] * 99),
    ]
    keys = fill(index, "a.md", vectors, 100)
    assert ranking(index, unit([1.0] + [0.0] * 99), 2) == keys[-2:]


def _what_is_rolled_back_was_never_there(index: SqliteStore) -> None:
    vectors = random_vectors(20, 16, seed=16)
    keys = fill(index, "a.md", vectors, 16)
    try:
        with index.transaction() as writer:
            writer.delete_file("a.md")
            assert writer.nearest(1, vectors[0], 5) == []
            raise KeyError("changed my mind")
    except KeyError:
        assert ranking(index, vectors[7], 1) == [keys[7]]


def _another_opening_finds_the_same(index: SqliteStore) -> None:
    vectors = random_vectors(50, 16, seed=17)
    fill(index, "a.md", vectors, 16)
    before = ranking(index, vectors[3], 10)
    index.close()
    assert ranking(index, vectors[3], 10) == before


def _a_dropped_space_is_gone_and_its_vectors_stay_cached(index: SqliteStore) -> None:
    vectors = random_vectors(10, 16, seed=18)
    fill(index, "a.md", vectors, 16)
    with index.transaction() as writer:
        writer.drop_space(1)
    with index.snapshot() as reader:
        state = reader.state()
        assert state.spaces == ()
        assert state.cache_entries == 10
    again = fill(index, "a.md", vectors, 16)
    assert ranking(index, vectors[4], 1, space=2) == [again[4]]


def _an_empty_space_answers_nothing(index: SqliteStore) -> None:
    with index.transaction() as writer:
        writer.add_space(identity_of(16))
    assert ranking(index, random_vectors(1, 16, seed=19)[0], 10) == []


vector_index_contract: tuple[Callable[[SqliteStore], None], ...] = (
    _the_best_are_found_with_their_exact_cosines,
    _a_filter_never_costs_results,
    _asking_for_more_than_there_is_gives_all_of_it,
    _a_deleted_file_is_never_found_again,
    _near_copies_of_a_replaced_text_do_not_crowd_out_the_rest,
    _a_text_that_is_not_covered_is_neither_found_nor_due,
    _spaces_do_not_mix,
    _the_same_text_in_two_files_is_found_twice,
    _a_rebuild_hides_its_vectors_until_it_is_published,
    _a_vector_along_one_axis_is_found_first,
    _what_is_rolled_back_was_never_there,
    _another_opening_finds_the_same,
    _a_dropped_space_is_gone_and_its_vectors_stay_cached,
    _an_empty_space_answers_nothing,
)
"""The checks every `VectorIndex` must pass."""
