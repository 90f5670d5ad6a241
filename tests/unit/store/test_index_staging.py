"""Large files are stored in several transactions, appear at once, and are swept if their process
died."""

from __future__ import annotations

from typing import Protocol

import pytest

from clawmark.model.errors import IndexBusy
from clawmark.store.sqlite.store import SqliteStore
from clawmark.store.sqlite.transaction import DELETED_AT_ONCE
from clawmark.testing.store_samples import any_of
from clawmark.testing.vectors import file_of, fill, random_vectors

MANY = [f"large passage {number}" for number in range(DELETED_AT_ONCE + 100)]


class Clock(Protocol):
    def pass_minutes(self, minutes: int) -> None: ...


def texts(index: SqliteStore, path: str) -> list[str]:
    with index.snapshot() as reader:
        return [row.text for row in reader.chunks_of(path)]


def found(index: SqliteStore, word: str) -> int:
    with index.snapshot() as reader:
        return len(reader.search_keywords(any_of(word), 10_000))


def count(index: SqliteStore, table: str) -> int:
    with index.snapshot() as reader:
        rows: int = reader.db.rows(f"SELECT count(*) FROM {table}")[0][0]
        return rows


def sweep(index: SqliteStore) -> None:
    swept = 1
    while swept:
        with index.transaction() as writer:
            swept = writer.sweep()


def stage(index: SqliteStore, path: str, *passages: str) -> int:
    row, chunks, words = file_of(path, *passages)
    with index.transaction() as writer:
        file = writer.stage_file(row)
    for start in range(0, len(chunks), 100):
        with index.transaction() as writer:
            writer.add_chunks(file, chunks[start : start + 100], words[start : start + 100])
    return file


def finish(index: SqliteStore, file: int) -> None:
    with index.transaction() as writer:
        writer.finish_file(file)


def test_a_staged_file_is_visible_only_when_it_is_complete(index: SqliteStore) -> None:
    with index.transaction() as writer:
        writer.put_file(*file_of("a.md", "old passage"))
    file = stage(index, "a.md", *MANY)
    assert texts(index, "a.md") == ["old passage"]
    assert (found(index, "large"), found(index, "old")) == (0, 1)
    with index.snapshot() as reader:
        assert (reader.state().files, reader.state().chunks) == (1, 1)
    finish(index, file)
    assert texts(index, "a.md") == MANY
    assert (found(index, "large"), found(index, "old")) == (len(MANY), 0)
    sweep(index)
    assert count(index, "chunks") == len(MANY)


def test_staged_passages_are_not_due_and_not_near(index: SqliteStore) -> None:
    vectors = random_vectors(3, 8, seed=1)
    fill(index, "b.md", vectors, 8)
    file = stage(index, "a.md", *MANY)
    with index.snapshot() as reader:
        assert reader.count_due(1) == 0
        assert reader.due_keys(1) == []
        assert len(reader.nearest(1, vectors[0], 10)) == 3
    finish(index, file)
    with index.snapshot() as reader:
        assert reader.count_due(1) == len(MANY) == len(reader.due_keys(1))


def test_a_deleted_large_file_is_invisible_at_once_and_swept_later(index: SqliteStore) -> None:
    finish(index, stage(index, "a.md", *MANY))
    with index.transaction() as writer:
        writer.put_file(*file_of("b.md", "small passage"))
        writer.delete_file("a.md")
    assert texts(index, "a.md") == []
    assert (found(index, "large"), found(index, "small")) == (0, 1)
    assert count(index, "chunks") == len(MANY) + 1
    with index.snapshot() as reader:
        assert reader.state().has_dead
    sweep(index)
    assert (count(index, "chunks"), count(index, "files")) == (1, 1)
    with index.snapshot() as reader:
        assert not reader.state().has_dead
        assert reader.integrity_problems() == []


def test_vectors_of_a_replaced_large_file_are_not_found(index: SqliteStore) -> None:
    vectors = random_vectors(len(MANY), 8, seed=1)
    fill(index, "a.md", vectors, 8)
    with index.transaction() as writer:
        writer.put_file(*file_of("a.md", "new passage"))
    with index.snapshot() as reader:
        assert reader.nearest(1, vectors[5], 3) == []
        assert reader.count_due(1) == 1
    sweep(index)
    with index.snapshot() as reader:
        assert [space.vectors for space in reader.spaces()] == [0]


def test_only_one_index_at_a_time_may_stage(index: SqliteStore) -> None:
    other = SqliteStore(index.path)
    with index.staging(timeout=0), pytest.raises(IndexBusy), other.staging(timeout=0):
        pass
    with other.staging(timeout=0):
        pass


def test_a_newer_version_replaces_the_staged_one(index: SqliteStore) -> None:
    first = stage(index, "a.md", *MANY)
    second = stage(index, "a.md", "other", "bytes")
    with pytest.raises(IndexBusy, match="by another process, or changed"):
        finish(index, first)
    finish(index, second)
    assert texts(index, "a.md") == ["other", "bytes"]


def test_a_file_staged_by_a_dead_process_is_swept_after_a_minute(
    index: SqliteStore, clock: Clock
) -> None:
    stage(index, "a.md", *MANY)
    sweep(index)
    assert count(index, "chunks") == len(MANY)
    clock.pass_minutes(2)
    sweep(index)
    assert (count(index, "chunks"), count(index, "files")) == (0, 0)
    finish(index, stage(index, "a.md", *MANY))
    assert found(index, "large") == len(MANY)


def test_a_file_staged_by_a_dead_process_is_replaced_at_once(index: SqliteStore) -> None:
    first = stage(index, "a.md", *MANY)
    finish(index, stage(index, "a.md", *MANY))
    assert texts(index, "a.md") == MANY
    with pytest.raises(IndexBusy):
        finish(index, first)


def test_deleting_a_file_deletes_its_staged_version(index: SqliteStore) -> None:
    file = stage(index, "a.md", "one", "two")
    with index.transaction() as writer:
        writer.delete_file("a.md")
    with pytest.raises(IndexBusy):
        finish(index, file)
    assert count(index, "chunks") == 0


def test_a_file_staged_for_a_rebuild_appears_with_it(index: SqliteStore) -> None:
    with index.transaction() as writer:
        writer.put_file(*file_of("a.md", "old passage"))
        number = writer.begin_rebuild({"chunker": "2"})
    row, chunks, words = file_of("a.md", *MANY)
    with index.transaction() as writer:
        file = writer.stage_file(row, building=number)
    with index.transaction() as writer:
        writer.add_chunks(file, chunks, words)
    finish(index, file)
    assert texts(index, "a.md") == ["old passage"]
    with index.transaction() as writer:
        writer.publish(number)
    assert texts(index, "a.md") == MANY


def test_a_file_staged_for_the_old_generation_is_removed_with_it(index: SqliteStore) -> None:
    with index.transaction() as writer:
        number = writer.begin_rebuild({"chunker": "2"})
    file = stage(index, "a.md", *MANY)
    with index.transaction() as writer:
        writer.publish(number)
    with pytest.raises(IndexBusy):
        finish(index, file)
    sweep(index)
    assert count(index, "chunks") == 0
