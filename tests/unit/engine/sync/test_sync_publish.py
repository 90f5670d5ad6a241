"""The end of a rebuild: every visible file is still found, rebuilt or copied."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.engine.sync.publish import publish
from clawmark.engine.sync.scan import SyncRequest
from clawmark.engine.sync.text import CHUNKS_AT_ONCE
from clawmark.model.reports import Progress
from clawmark.store.sqlite.snapshot import SqliteSnapshot
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing.store_samples import any_of
from clawmark.testing.vectors import file_of


def begin(index: SqliteStore) -> int:
    with index.transaction() as writer:
        number = writer.begin_rebuild({"chunker": "2"})
    assert number
    return number


def put(index: SqliteStore, path: str, *texts: str, building: int = 0) -> None:
    with index.transaction() as writer:
        writer.put_file(*file_of(path, *texts), building=building)


def found(index: SqliteStore, word: str) -> set[str]:
    with index.snapshot() as reader:
        rows = reader.chunks([key for key, _ in reader.search_keywords(any_of(word), 10_000)])
        return {row.path for row in rows.values()}


def test_files_missing_from_the_rebuild_are_copied(index: SqliteStore) -> None:
    for name in ("one", "two", "three"):
        put(index, f"{name}.md", f"zebra of {name}")
    number = begin(index)
    put(index, "one.md", "rebuilt zebra of one", building=number)
    publish(index, number, 1.0)
    assert found(index, "zebra") == {"one.md", "two.md", "three.md"}
    assert found(index, "rebuilt") == {"one.md"}
    with index.snapshot() as reader:
        assert (reader.state().generation, reader.state().identity) == (number, {"chunker": "2"})


def test_more_than_one_transaction_is_copied_file_by_file(index: SqliteStore) -> None:
    large = [f"large zebra {number}" for number in range(2 * CHUNKS_AT_ONCE + 10)]
    put(index, "small.md", "small zebra")
    put(index, "large.md", *large)
    for name in range(8):
        put(index, f"{name}.md", *[f"zebra {name} {line}" for line in range(CHUNKS_AT_ONCE // 3)])
    publish(index, begin(index), 1.0)
    assert found(index, "zebra") == {"small.md", "large.md", *(f"{name}.md" for name in range(8))}
    with index.snapshot() as reader:
        assert [row.text for row in reader.chunks_of("large.md")] == large


def test_a_file_changed_by_another_process_is_copied_in_its_current_state(
    index: SqliteStore,
) -> None:
    put(index, "a.md", "old zebra")
    number = begin(index)
    put(index, "a.md", "rebuilt zebra", building=number)
    put(index, "a.md", "newest zebra")
    put(index, "b.md", "new zebra")
    publish(index, number, 1.0)
    assert (found(index, "newest"), found(index, "rebuilt"), found(index, "new")) == (
        {"a.md"},
        set(),
        {"b.md"},
    )


def test_a_rebuild_that_another_process_has_abandoned_is_not_published(index: SqliteStore) -> None:
    put(index, "a.md", "old zebra")
    number = begin(index)
    put(index, "a.md", "rebuilt zebra", building=number)
    with index.transaction() as writer:
        writer.abandon()
    publish(index, number, 1.0)
    assert (found(index, "old"), found(index, "rebuilt")) == ({"a.md"}, set())
    with index.snapshot() as reader:
        assert (reader.state().generation, reader.state().identity) == (1, {})


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    notes = tmp_path / "ws" / "memory"
    notes.mkdir(parents=True)
    for number in range(80):
        (notes / f"{number:02}.md").write_text(
            f"# Note {number}\n\nThe zebra number{number}.\n", encoding="utf-8"
        )
    with Memory.open(tmp_path / "ws", state_dir=tmp_path / "state", provider="none") as opened:
        opened.sync()
        yield opened


def interrupted(memory: Memory) -> None:
    """A forced rebuild that is cancelled after its first files."""
    seen: list[Progress] = []
    memory._builtin.run_sync(
        SyncRequest(force=True, progress=seen.append, cancelled=lambda: bool(seen))
    )


def test_an_interrupted_rebuild_continues_where_it_stopped(memory: Memory) -> None:
    interrupted(memory)
    store = memory._builtin.parts.store
    with store.snapshot() as reader:
        done = sorted(reader.files(which="rebuilt"))
        building = reader.state().building
    assert 0 < len(done) < 80
    assert len(memory.search("zebra", max_results=100).hits) == 80
    report = memory.sync()
    assert (report.added, report.generation) == (80 - len(done), building)
    assert memory.verify().problems == ()


def test_other_settings_abandon_an_interrupted_rebuild(memory: Memory) -> None:
    interrupted(memory)
    overrides = {"memorySearch.chunking.tokens": 100, "memorySearch.chunking.overlap": 0}
    places = memory.places
    with Memory.open(
        places.workspace, state_dir=places.state_dir, provider="none", overrides=overrides
    ) as other:
        report = other.sync()
        assert (report.added, report.generation) == (80, 3)
        assert other.verify().problems == ()
    with memory._builtin.parts.store.snapshot() as reader:
        assert isinstance(reader, SqliteSnapshot)
        assert reader.db.rows("SELECT count(*) FROM files") == [(80,)]
        assert not reader.state().has_dead


def test_a_note_written_while_a_rebuild_stands_still_is_found_at_once(memory: Memory) -> None:
    interrupted(memory)
    memory.append("A quagga came by.")
    assert memory.search("quagga").hits
    with memory._builtin.parts.store.snapshot() as reader:
        assert reader.state().building is not None
    memory.sync()
    assert memory.search("quagga").hits
