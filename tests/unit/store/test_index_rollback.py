"""Without a write-ahead log, a killed writer leaves a journal, and the next process restores the
index."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing.vectors import file_of


@pytest.fixture
def crashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index on a network disk after a power failure in the middle of a transaction."""
    monkeypatch.setattr("clawmark.store.sqlite.opening.shared_file_system", lambda _: "nfs")
    path = tmp_path / "index.sqlite"
    index = SqliteStore(str(path))
    with index.transaction() as writer:
        writer.put_file(*file_of("memory/a.md", "amber"))
    left, before = tmp_path / "left", path.read_bytes()
    left.mkdir()
    with index.transaction() as writer:
        writer.put_file(*file_of("memory/a.md", "birch"))
        writer.db._connection.cache_flush()  # SQLite does this itself in a large transaction.
        for name in (path.name, f"{path.name}-journal"):
            shutil.copy(tmp_path / name, left / name)
    index.close()
    assert (left / path.name).read_bytes() != before, "some of it has reached the main file"
    return left / path.name


def test_a_reader_finds_the_index_as_it_was(crashed: Path) -> None:
    index = SqliteStore(str(crashed))
    with index.snapshot() as reader:
        assert [chunk.text for chunk in reader.chunks_of("memory/a.md")] == ["amber"]
        assert reader.integrity_problems() == []
    index.close()


def test_a_writer_continues(crashed: Path) -> None:
    index = SqliteStore(str(crashed))
    with index.transaction() as writer:
        writer.put_file(*file_of("memory/b.md", "cedar"))
    with index.snapshot() as reader:
        assert sorted(reader.files()) == ["memory/a.md", "memory/b.md"]
    index.close()
