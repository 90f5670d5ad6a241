"""A growing file: its last chunks are replaced, the others stay, and only one of two writers
succeeds."""

from __future__ import annotations

from clawmark.model.documents import Chunk
from clawmark.model.values import FileRow
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing.store_samples import any_of
from clawmark.testing.vectors import file_of, identity_of, unit

PATH = "sessions/x.jsonl"


def version(
    progress: str, *texts: str, start: int = 1
) -> tuple[FileRow, list[Chunk], list[tuple[str, str]]]:
    row, chunks, words = file_of(PATH, *texts)
    moved = [
        chunk._replace(start_line=chunk.start_line + start - 1, end_line=chunk.end_line + start - 1)
        for chunk in chunks
    ]
    return row._replace(source="sessions", progress=progress), moved, words


def texts(index: SqliteStore) -> list[tuple[int, str]]:
    with index.snapshot() as reader:
        return [(chunk.start_line, chunk.text) for chunk in reader.chunks_of(PATH)]


def extend(
    index: SqliteStore, was: str, progress: str, *fresh: str, start: int, building: int = 0
) -> bool:
    row, chunks, words = version(progress, *fresh, start=start)
    with index.transaction() as writer:
        return writer.extend_file(row, start, chunks, words, was=was, building=building)


def test_the_end_is_replaced_and_the_rest_keeps_its_keys(index: SqliteStore) -> None:
    with index.transaction() as writer:
        keys = writer.put_file(*version("one", "amber", "birch", "cedar"))
    assert extend(index, "one", "two", "cedar delta", "ember", start=3)
    assert texts(index) == [(1, "amber"), (2, "birch"), (3, "cedar delta"), (4, "ember")]
    with index.snapshot() as reader:
        row = reader.files()[PATH]
        assert (row.progress, row.chunks, reader.state().chunks) == ("two", 4, 4)
        assert [chunk.key for chunk in reader.chunks_of(PATH)][:2] == keys[:2]
        assert [key for key, _ in reader.search_keywords(any_of("cedar"), 10)] == [
            reader.chunks_of(PATH)[2].key
        ]


def test_a_writer_that_was_overtaken_changes_nothing(index: SqliteStore) -> None:
    with index.transaction() as writer:
        writer.put_file(*version("one", "amber", "birch"))
    assert extend(index, "one", "two", "birch cedar", start=2)
    assert not extend(index, "one", "two", "other", start=1)
    assert not extend(index, "absent", "two", "other", start=1)
    assert texts(index) == [(1, "amber"), (2, "birch cedar")]


def test_vectors_of_replaced_chunks_are_gone_and_the_others_stay(index: SqliteStore) -> None:
    with index.transaction() as writer:
        keys = writer.put_file(*(put := version("one", "amber", "birch")))
        space = writer.add_space(identity_of(2)).id
        writer.put_vectors(
            space,
            [
                (key, chunk.hash, unit([1, number]))
                for number, (key, chunk) in enumerate(zip(keys, put[1], strict=True))
            ],
        )
    assert extend(index, "one", "two", "cedar", start=2)
    with index.snapshot() as reader:
        assert reader.count_due(space) == 1
        assert [key for key, _ in reader.nearest(space, unit([1, 0]), 10)] == keys[:1]


def test_a_rebuild_extends_its_own_version_and_readers_keep_theirs(index: SqliteStore) -> None:
    with index.transaction() as writer:
        writer.put_file(*version("one", "amber"))
        building = writer.begin_rebuild()
    with index.transaction() as writer:
        writer.put_file(*version("half", "birch"), building=building)
    assert extend(index, "half", "whole", "cedar", start=2, building=building)
    assert texts(index) == [(1, "amber")]
    with index.snapshot() as reader:
        assert reader.files(which="rebuilt")[PATH].progress == "whole"
        assert reader.search_keywords(any_of("cedar"), 10) == []
    with index.transaction() as writer:
        writer.publish(building)
    assert texts(index) == [(1, "birch"), (2, "cedar")]


def test_an_append_during_a_rebuild_is_visible_at_once(
    index: SqliteStore,
) -> None:
    with index.transaction() as writer:
        writer.put_file(*version("one", "amber"))
        building = writer.begin_rebuild()
    with index.transaction() as writer:
        writer.put_file(*version("one", "amber"), building=building)
    assert extend(index, "one", "two", "birch", start=2)
    assert texts(index) == [(1, "amber"), (2, "birch")]
    with index.transaction() as writer:
        writer.publish(building)
    assert texts(index) == [(1, "amber")]
    with index.snapshot() as reader:
        assert reader.files()[PATH].progress == "one"
        assert reader.state().chunks == 1


def test_extending_a_file_of_a_published_rebuild_is_an_ordinary_change(
    index: SqliteStore,
) -> None:
    with index.transaction() as writer:
        building = writer.begin_rebuild()
        writer.put_file(*version("half", "amber"), building=building)
    with index.transaction() as writer:
        writer.publish(building)
    assert extend(index, "half", "whole", "birch", start=2, building=building)
    assert texts(index) == [(1, "amber"), (2, "birch")]
