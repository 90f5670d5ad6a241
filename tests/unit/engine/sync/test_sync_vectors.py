"""Filling a space: due texts are embedded once, concurrently, and stored as soon as they arrive."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from clawmark.embed.base import Traits
from clawmark.engine.sync.outcome import VectorReport
from clawmark.engine.sync.vectors import fill_space
from clawmark.model.errors import EmbeddingUnavailable
from clawmark.model.reports import Progress
from clawmark.model.values import Vector
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing import HashingEmbedder
from clawmark.testing.store_samples import any_of
from clawmark.testing.vectors import file_of


class Service(HashingEmbedder):
    """A service with a configurable answer that records the texts of each call."""

    def __init__(
        self, at_once: int, most: int, answer: Callable[[Sequence[str]], None] = lambda texts: None
    ) -> None:
        super().__init__(dims=16)
        self.calls: list[list[str]] = []
        self._traits = Traits("a service", 0.0, 1.0, most_texts=most, remote=True, at_once=at_once)
        self._answer = answer

    @property
    def traits(self) -> Traits:
        return self._traits

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        self.calls.append(list(texts))
        self._answer(texts)
        return super().embed_texts(texts)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(str(tmp_path / "index.sqlite"))
    yield made
    made.close()


def put(index: SqliteStore, path: str, *texts: str) -> None:
    with index.transaction() as writer:
        writer.put_file(*file_of(path, *texts))


def fill(
    index: SqliteStore,
    embedder: Service,
    progress: Callable[[Progress], None] = lambda progress: None,
) -> VectorReport:
    return fill_space(embedder, store=index, progress=progress, out_of_time=lambda: False)


def vectors(index: SqliteStore) -> int:
    with index.snapshot() as reader:
        return sum(space.vectors for space in reader.spaces())


def test_calls_get_smaller_towards_the_end_and_none_is_tiny(index: SqliteStore) -> None:
    put(index, "a.md", *[f"note {number}" for number in range(2000)])
    service = Service(at_once=4, most=200)
    report = fill(index, service)
    assert (report.embedded, report.due, vectors(index)) == (2000, 0, 2000)
    sizes = [len(texts) for texts in service.calls]
    assert max(sizes) == 200
    assert sorted(sizes)[0] <= 64
    assert all(size >= 64 for size in sorted(sizes)[1:])
    assert sorted(text for texts in service.calls for text in texts) == sorted(
        f"note {number}" for number in range(2000)
    )


def test_a_slow_call_does_not_delay_the_vectors_of_others(index: SqliteStore) -> None:
    put(index, "a.md", *[f"note {number}" for number in range(40)])
    others_are_kept = threading.Event()
    held_back: list[str] = []

    def answer(texts: Sequence[str]) -> None:
        if "note 0" in texts:
            assert others_are_kept.wait(60), "the first call held the others back"
            held_back.extend(texts)

    def look(progress: Progress) -> None:
        if progress.done == 30:
            others_are_kept.set()

    report = fill(index, Service(at_once=2, most=10, answer=answer), look)
    assert (report.embedded, report.due) == (40, 0)
    assert len(held_back) == 10


def test_after_a_failed_call_only_its_own_texts_stay_due(index: SqliteStore) -> None:
    put(index, "a.md", *[f"note {number}" for number in range(40)])

    def answer(texts: Sequence[str]) -> None:
        if "note 12" in texts:
            raise EmbeddingUnavailable("The service is away.", provider="a", model="b")

    report = fill(index, Service(at_once=3, most=10, answer=answer))
    assert report.degraded is not None
    assert report.degraded.reason == "The service is away."
    assert report.due >= 10
    assert vectors(index) == 40 - report.due
    again = Service(at_once=3, most=10)
    assert fill(index, again).due == 0
    assert sum(map(len, again.calls)) == report.due


def test_a_text_in_many_files_is_sent_once(index: SqliteStore) -> None:
    for number in range(30):
        put(index, f"{number}.md", "the same words", f"and others, {number}")
    service = Service(at_once=4, most=8)
    report = fill(index, service)
    assert (report.embedded, report.due, vectors(index)) == (31, 0, 60)
    assert sum(map(len, service.calls)) == 31


def test_cached_texts_are_not_sent(index: SqliteStore) -> None:
    put(index, "a.md", "one", "two")
    fill(index, Service(at_once=2, most=8))
    put(index, "b.md", "two", "three")
    service = Service(at_once=2, most=8)
    report = fill(index, service)
    assert (report.embedded, report.reused, service.calls) == (1, 1, [["three"]])


def test_a_chunk_deleted_while_others_are_embedded_is_skipped(index: SqliteStore) -> None:
    put(index, "a.md", *[f"note {number}" for number in range(10)])
    put(index, "b.md", *[f"gone {number}" for number in range(10)])

    def answer(texts: Sequence[str]) -> None:
        with index.transaction() as writer:
            writer.delete_file("b.md")

    report = fill(index, Service(at_once=1, most=4, answer=answer))
    assert (report.due, vectors(index)) == (0, 10)


@pytest.mark.parametrize("at_once", [1, 3])
def test_text_without_words_is_not_embedded_and_not_due(index: SqliteStore, at_once: int) -> None:
    numbered = "\n".join(f"- item {number}" for number in range(300))
    put(index, "a.md", "Ann drinks tea.", numbered, "zq" * 800)
    service = Service(at_once=at_once, most=10)
    report = fill(index, service)
    assert service.calls == [["Ann drinks tea."]]
    assert (report.embedded, report.due, report.degraded) == (1, 0, None)
    with index.snapshot() as reader:
        assert [space.ready for space in reader.spaces()] == [True]
        assert len(reader.search_keywords(any_of("item"), 10)) == 1
    assert fill(index, service).due == 0
    assert len(service.calls) == 1
