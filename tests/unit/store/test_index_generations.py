"""Rebuilds: the old generation answers, then the new one, and nothing is left behind."""

from __future__ import annotations

from typing import Any

import pytest

from clawmark.model.errors import IndexBusy
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing.store_samples import any_of
from clawmark.testing.vectors import file_of, identity_of, random_vectors


def words(index: SqliteStore, *candidates: str) -> set[str]:
    """Which of some words are found."""
    with index.snapshot() as reader:
        return {word for word in candidates if reader.search_keywords(any_of(word), 5)}


def rows(index: SqliteStore) -> tuple[int, int]:
    with index.snapshot() as reader:
        ((files, chunks),) = reader.db.rows(
            "SELECT (SELECT count(*) FROM files), (SELECT count(*) FROM chunks)"
        )
        return files, chunks


def sweep(index: SqliteStore) -> None:
    swept = 1
    while swept:
        with index.transaction() as writer:
            swept = writer.sweep(limit=3)


@pytest.fixture(autouse=True)
def _old_answers(index: SqliteStore) -> None:
    with index.transaction() as writer:
        for name in ("one", "two", "three"):
            writer.put_file(*file_of(f"{name}.md", f"old {name}", f"old second {name}"))


def begin(index: SqliteStore, identity: dict[str, Any]) -> int:
    while True:
        with index.transaction() as writer:
            number = writer.begin_rebuild(identity)
            if number:
                return number
            writer.sweep(limit=3)


def rebuild(index: SqliteStore, *names: str) -> int:
    number = begin(index, {"chunker": "2"})
    with index.transaction() as writer:
        for name in names:
            writer.put_file(*file_of(f"{name}.md", f"new {name}"), building=number)
    return number


def publish(index: SqliteStore, number: int) -> int:
    """Publish a complete rebuild and return the generation that answers."""
    with index.transaction() as writer:
        assert writer.publish(number) == []
        return writer.generation


def test_the_old_generation_answers_until_the_new_one_is_published(index: SqliteStore) -> None:
    number = rebuild(index, "one", "two", "three")
    assert words(index, "old", "new") == {"old"}
    with index.snapshot() as reader:
        state = reader.state()
        assert (state.generation, state.building, state.files, state.chunks) == (1, 2, 3, 6)
        assert sorted(reader.files(which="rebuilt")) == ["one.md", "three.md", "two.md"]
        assert len(reader.chunks_of("one.md")) == 2
    assert publish(index, number) == 2
    assert words(index, "old", "new") == {"new"}
    with index.snapshot() as reader:
        state = reader.state()
        assert (state.generation, state.building, state.files, state.chunks) == (2, None, 3, 3)
        assert [row.text for row in reader.chunks_of("one.md")] == ["new one"]
        assert reader.files(which="rebuilt") == {}


def test_sweeping_after_publishing_leaves_only_the_new_rows(index: SqliteStore) -> None:
    publish(index, rebuild(index, "one", "two", "three"))
    assert rows(index) == (6, 9)
    sweep(index)
    assert rows(index) == (3, 3)
    assert words(index, "old", "new") == {"new"}


def test_scores_stay_the_same_while_a_rebuild_runs_and_is_swept(index: SqliteStore) -> None:
    def scores() -> list[tuple[str, float]]:
        with index.snapshot() as reader:
            found = reader.search_keywords(any_of("second", "one", "two"), 10)
            texts = reader.chunks([key for key, _ in found])
            return [(texts[key].text, score) for key, score in found]

    before = scores()
    number = begin(index, {"chunker": "2"})
    for name in ("one", "two", "three"):
        with index.transaction() as writer:
            writer.put_file(
                *file_of(f"{name}.md", f"old {name}", f"old second {name}"), building=number
            )
        assert scores() == before
    publish(index, number)
    assert scores() == before
    while True:
        with index.transaction() as writer:
            if not writer.sweep(limit=2):
                break
        assert scores() == before


def test_an_abandoned_rebuild_leaves_no_trace(index: SqliteStore) -> None:
    before = rows(index)
    rebuild(index, "one", "two")
    with index.transaction() as writer:
        writer.abandon()
    assert words(index, "old", "new") == {"old"}
    with index.snapshot() as reader:
        assert reader.state().has_dead
    sweep(index)
    assert rows(index) == before
    assert words(index, "old", "new") == {"old"}
    with index.snapshot() as reader:
        assert reader.state().building is None
        assert not reader.state().has_dead
    publish(index, rebuild(index, "one", "two", "three"))
    assert words(index, "old", "new") == {"new"}


def test_a_rebuild_for_the_same_identity_is_continued(index: SqliteStore) -> None:
    first = rebuild(index, "one")
    with index.transaction() as writer:
        assert writer.begin_rebuild({"chunker": "2"}) == first == 2
        assert sorted(writer.files(which="rebuilt")) == ["one.md"]
        writer.abandon()
    second = begin(index, {"sources": ("memory", "sessions")})
    assert second == 3
    with index.transaction() as writer:
        writer.put_file(*file_of("two.md", "new two"), building=second)
    with index.transaction() as writer:
        assert writer.begin_rebuild({"sources": ("memory", "sessions")}) == second
        assert sorted(writer.files(which="rebuilt")) == ["two.md"]


def test_a_rebuild_for_another_identity_starts_over(index: SqliteStore) -> None:
    rebuild(index, "one")
    assert begin(index, {"chunker": "3"}) == 3
    with index.snapshot() as reader:
        assert reader.files(which="rebuilt") == {}
    assert words(index, "old", "new") == {"old"}


def test_a_process_whose_rebuild_was_abandoned_is_refused(index: SqliteStore) -> None:
    first = rebuild(index, "one")
    second = begin(index, {"chunker": "3"})
    with pytest.raises(IndexBusy, match="other settings"), index.transaction() as writer:
        writer.put_file(*file_of("two.md", "lost two"), building=first)
    assert publish(index, first) == 1
    with index.transaction() as writer:
        for name in ("one", "two", "three"):
            writer.put_file(*file_of(f"{name}.md", f"third {name}"), building=second)
    assert publish(index, second) == 3
    assert words(index, "lost", "third", "old", "new") == {"third"}


def test_a_file_changed_during_a_rebuild_is_new_at_once_and_due_again(index: SqliteStore) -> None:
    number = rebuild(index, "one", "two", "three")
    with index.transaction() as writer:
        writer.put_file(*file_of("one.md", "fresh one"))
    assert words(index, "fresh") == {"fresh"}
    with index.snapshot() as reader:
        assert sorted(reader.files(which="rebuilt")) == ["three.md", "two.md"]
    with index.transaction() as writer:
        writer.put_file(*file_of("one.md", "rebuilt one"), building=number)
    assert words(index, "fresh", "rebuilt") == {"fresh"}
    publish(index, number)
    assert words(index, "fresh", "rebuilt") == {"rebuilt"}


def test_a_file_deleted_during_a_rebuild_is_gone_from_both_generations(index: SqliteStore) -> None:
    number = rebuild(index, "one", "two", "three")
    with index.transaction() as writer:
        writer.delete_file("one.md")
    assert words(index, "one", "two") == {"two"}
    publish(index, number)
    assert words(index, "one", "two") == {"two"}


def test_a_file_built_twice_counts_once(index: SqliteStore) -> None:
    rebuild(index, "one")
    rebuild(index, "one")
    with index.snapshot() as reader:
        assert [row.chunks for row in reader.files(which="rebuilt").values()] == [1]
    assert rows(index) == (4, 7)


def test_files_of_a_rebuild_that_was_published_by_another_process_are_ordinary_changes(
    index: SqliteStore,
) -> None:
    number = rebuild(index, "one", "two", "three")
    publish(index, number)
    with index.transaction() as writer:
        writer.put_file(*file_of("one.md", "late one"), building=number)
        assert writer.publish(number) == []
        assert writer.generation == 2
        writer.abandon()
    assert words(index, "late", "new", "old") == {"late", "new"}
    sweep(index)
    assert rows(index) == (3, 3)


def test_chunks_of_a_rebuild_are_due_before_it_is_published(index: SqliteStore) -> None:
    vector = random_vectors(1, 8, seed=1)[0]
    with index.transaction() as writer:
        space = writer.add_space(identity_of(8)).id
        writer.put_vectors(
            space,
            [
                (key, text, vector)
                for key, text, _, _ in writer.due_chunks(space, writer.due_keys(space))
            ],
        )
        assert writer.count_due(space) == 0
    number = rebuild(index, "one", "two", "three")
    with index.snapshot() as reader:
        due = reader.due_chunks(space, reader.due_keys(space))
        assert [text for _, _, text, _ in due] == ["new one", "new two", "new three"]
        assert reader.count_due(space) == 3
    with index.transaction() as writer:
        writer.put_vectors(space, [(key, text, vector) for key, text, _, _ in due])
        writer.publish(number)
        assert writer.count_due(space) == 0
    sweep(index)
    with index.snapshot() as reader:
        assert reader.count_due(space) == 0
        assert [space.vectors for space in reader.state().spaces] == [3]


def test_rebuild_after_rebuild_leaves_one_generation(index: SqliteStore) -> None:
    for _ in range(4):
        publish(index, rebuild(index, "one", "two", "three"))
    sweep(index)
    assert rows(index) == (3, 3)
    with index.snapshot() as reader:
        assert reader.state().generation == 5
        assert reader.integrity_problems() == []
