"""Filters see the same files as every other query."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from clawmark.model.values import Filters
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing.store_samples import any_of, put_dated


def test_a_source_that_is_not_searched_does_not_pass_a_filter(
    index: SqliteStore, tmp_path: Path
) -> None:
    put_dated(index, "sessions/a.jsonl", ("2026-01-09", "2026-01-12"), source="sessions")
    put_dated(index, "MEMORY.md", ("", ""))
    with (
        closing(SqliteStore(str(tmp_path / "index.sqlite"), unsearched=["sessions"])) as narrow,
        narrow.snapshot() as reader,
    ):
        assert list(reader.files()) == ["MEMORY.md"]
        for filters in (
            Filters(since="2026-01-11"),
            Filters(source="sessions"),
            Filters(path="sessions/*"),
        ):
            assert reader.within(filters).count_chunks() == 0
            assert reader.within(filters).search_keywords(any_of("heron"), 10) == []
