"""Filters narrow both kinds of queries before the limit is applied, and see the same files as every
other query.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from clawmark.model.values import Filters, SourceName
from clawmark.store.sqlite.store import Index
from clawmark.testing.vectors import file_of


def put(
    index: Index,
    path: str,
    *days: tuple[str, str],
    source: SourceName = "memory",
    word: str = "heron",
) -> None:
    row, chunks, words = file_of(path, *[f"{word} {path} {number}" for number in range(len(days))])
    dated = [
        chunk._replace(first_day=first, last_day=last)
        for chunk, (first, last) in zip(chunks, days, strict=True)
    ]
    with index.writing() as writer:
        writer.put_file(row._replace(source=source), dated, words)


def found(index: Index, filters: Filters, limit: int = 100) -> list[str]:
    with index.reading() as reader:
        keys = [key for key, _ in reader.within(filters).keywords('"heron"', limit)]
        return sorted(f"{row.path}:{row.start_line}" for row in reader.chunks(keys).values())


@pytest.fixture(autouse=True)
def _some_files(index: Index) -> None:
    put(index, "memory/2026-01-05.md", ("2026-01-05", "2026-01-05"))
    put(index, "memory/log.md", ("2026-01-07", "2026-01-10"), ("", ""))
    put(index, "sessions/a.jsonl", ("2026-01-09", "2026-01-12"), source="sessions")
    put(index, "MEMORY.md", ("", ""))


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (
            Filters(),
            [
                "MEMORY.md:1",
                "memory/2026-01-05.md:1",
                "memory/log.md:1",
                "memory/log.md:2",
                "sessions/a.jsonl:1",
            ],
        ),
        (Filters(since="2026-01-10"), ["memory/log.md:1", "sessions/a.jsonl:1"]),
        (Filters(since="2026-01-11"), ["sessions/a.jsonl:1"]),
        (Filters(until="2026-01-07"), ["memory/2026-01-05.md:1", "memory/log.md:1"]),
        (Filters(since="2026-01-08", until="2026-01-08"), ["memory/log.md:1"]),
        (Filters(since="2026-02-01"), []),
        (Filters(source="sessions"), ["sessions/a.jsonl:1"]),
        (
            Filters(path="memory/**"),
            ["memory/2026-01-05.md:1", "memory/log.md:1", "memory/log.md:2"],
        ),
        (Filters(path="2026-*", source="memory"), ["memory/2026-01-05.md:1"]),
    ],
)
def test_each_filter_keeps_what_matches_it(
    index: Index, filters: Filters, expected: list[str]
) -> None:
    assert found(index, filters) == expected


def test_a_limit_counts_only_what_passes_the_filters(index: Index) -> None:
    put(index, "memory/crowd.md", *[("", "")] * 50, word="heron heron heron")
    assert found(index, Filters(since="2026-01-01"), limit=3) == [
        "memory/2026-01-05.md:1",
        "memory/log.md:1",
        "sessions/a.jsonl:1",
    ]


def test_deleted_and_replaced_text_does_not_pass_a_filter(index: Index) -> None:
    put(index, "memory/2026-01-05.md", ("2026-01-06", "2026-01-06"))
    with index.writing() as writer:
        writer.drop_file("memory/log.md")
    assert found(index, Filters(until="2026-01-08")) == ["memory/2026-01-05.md:1"]
    assert found(index, Filters(until="2026-01-05")) == []


def test_a_source_that_is_not_searched_does_not_pass_a_filter(index: Index, tmp_path: Path) -> None:
    with (
        closing(Index(str(tmp_path / "index.sqlite"), unsearched=["sessions"])) as narrow,
        narrow.reading() as reader,
    ):
        assert reader.sources() == ["memory"]
        for filters in (
            Filters(since="2026-01-11"),
            Filters(source="sessions"),
            Filters(path="sessions/*"),
        ):
            assert reader.within(filters).selected() == frozenset()
            assert reader.within(filters).keywords('"heron"', 10) == []


def test_undated_chunks_among_the_selected_are_counted(index: Index) -> None:
    with index.reading() as reader:
        assert reader.within(Filters(path="memory/*")).count_undated() == 1
        assert reader.within(Filters(since="2000-01-01")).count_undated() == 0
        assert reader.sources() == ["memory", "sessions"]
