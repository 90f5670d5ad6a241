"""Text is indexed some whole files at a time; files left for lack of time stay due."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from clawmark import Memory
from clawmark.engine.sync import text as sync_text
from clawmark.engine.sync.text import CHUNKS_AT_ONCE, FILES_AT_ONCE
from clawmark.model.values import Vector
from clawmark.store.contents import MANY_LOOSE
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing import HashingEmbedder

LINE = "- about the lighthouse, the harbour and the boats that came in that day\n"


class Watching(HashingEmbedder):
    """Reads the index when it first has to embed something."""

    def __init__(self) -> None:
        super().__init__()
        self.look: Callable[[], object] = lambda: None
        self.seen: list[object] = []

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        self.seen = self.seen or [self.look()]
        return super().embed_texts(texts)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "agent" / "memory"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def embedder() -> Watching:
    return Watching()


@pytest.fixture
def memory(notes: Path, tmp_path: Path, embedder: Watching) -> Iterator[Memory]:
    with Memory.open(
        notes.parent, state_dir=tmp_path / "state", embedder=embedder, background=False
    ) as made:
        yield made


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """How many chunks each file had, for every group that was stored."""
    original, portions = sync_text._store, list[list[int]]()

    def store(portion: Any, *others: Any) -> None:
        original(portion, *others)
        portions.append([len(file.chunks) if file.chunks is not None else -1 for file in portion])

    monkeypatch.setattr(sync_text, "_store", store)
    return portions


def write(notes: Path, count: int, lines: int = 1) -> None:
    for number in range(count):
        (notes / f"note-{number:03}.md").write_text(
            f"# Note {number}\n\n{LINE * lines}", encoding="utf-8"
        )


def test_small_files_share_a_transaction(
    memory: Memory, notes: Path, stored: list[list[int]]
) -> None:
    write(notes, FILES_AT_ONCE + 10)
    report = memory.sync()
    assert [len(portion) for portion in stored] == [FILES_AT_ONCE, 10]
    assert (report.added, report.chunks, report.due_files) == (
        FILES_AT_ONCE + 10,
        FILES_AT_ONCE + 10,
        0,
    )


def test_a_transaction_has_a_limit_and_a_large_file_is_stored_alone(
    memory: Memory, notes: Path, stored: list[list[int]]
) -> None:
    write(notes, 8, lines=2400)
    (notes / "note-004.md").write_text(LINE * 15_000, encoding="utf-8")
    report = memory.sync()
    large = [portion for portion in stored if max(portion) > CHUNKS_AT_ONCE]
    assert [len(portion) for portion in large] == [1]
    assert all(sum(portion) <= CHUNKS_AT_ONCE for portion in stored if portion not in large)
    assert report.chunks == sum(map(sum, stored))
    assert memory.verify().problems == ()


def test_files_left_for_lack_of_time_stay_due_and_are_counted(
    memory: Memory, notes: Path, stored: list[list[int]]
) -> None:
    write(notes, 3 * FILES_AT_ONCE)
    first = memory.sync(seconds=0.0)
    assert len(stored) == 1
    assert (first.added, first.due_files) == (FILES_AT_ONCE, 2 * FILES_AT_ONCE)
    second = memory.sync()
    assert (second.added, second.due_files) == (2 * FILES_AT_ONCE, 0)


def test_new_changed_touched_unreadable_and_binary_files_are_distinguished(
    memory: Memory, notes: Path, stored: list[list[int]]
) -> None:
    write(notes, 4)
    memory.sync()
    (notes / "note-000.md").write_text("changed\n", encoding="utf-8")
    (notes / "note-001.md").touch()
    (notes / "note-002.md").write_bytes(b"\x89PNG\r\n" + bytes(2000))
    (notes / "new.md").write_text("new\n", encoding="utf-8")
    report = memory.sync()
    assert (report.added, report.updated, report.touched, report.chunks) == (1, 1, 1, 2)
    assert [failure.path for failure in report.failures] == ["memory/note-002.md"]
    assert sorted(stored[-1]) == [-1, 0, 1, 1]


def test_words_are_merged_before_the_vectors_which_may_take_long(
    memory: Memory, notes: Path, tmp_path: Path, embedder: Watching
) -> None:
    write(notes, (MANY_LOOSE + 2) * FILES_AT_ONCE)

    def loose() -> int:
        (found,) = (tmp_path / "state").rglob("*.sqlite")
        with SqliteStore(str(found)).snapshot() as reader:
            return reader.state().loose_words

    embedder.look = loose
    memory.sync()
    assert embedder.seen == [0]
