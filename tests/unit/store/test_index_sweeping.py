"""Sweeping: small steps, nothing left behind, space freed, and a short log despite readers."""

from __future__ import annotations

import time
from pathlib import Path

import apsw
import pytest

from clawmark.model.errors import IndexBusy
from clawmark.store.sqlite import store
from clawmark.store.sqlite.schema import WORDS
from clawmark.store.sqlite.snapshot import SqliteSnapshot
from clawmark.store.sqlite.store import SqliteStore
from clawmark.store.sqlite.transaction import SqliteTransaction
from clawmark.store.sqlite.upkeep import sweeping
from clawmark.testing.store_samples import any_of
from clawmark.testing.vectors import file_of


def put(index: SqliteStore, path: str, *texts: str) -> None:
    with index.transaction() as writer:
        writer.put_file(*file_of(path, *texts))


def steps(index: SqliteStore) -> int:
    count = 0
    while True:
        with index.transaction() as writer:
            if not writer.sweep():
                return count
        count += 1
        assert count < 5000


def long_texts(name: str, count: int) -> list[str]:
    return [
        f"{name} passage {number} with words{number} of{number} its{number} own{number}"
        for number in range(count)
    ]


def rebuild(index: SqliteStore, files: int) -> None:
    number = 0
    while not number:
        with index.transaction() as writer:
            number = writer.begin_rebuild({"chunker": "2"})
            if not number:
                writer.sweep()
    for file in range(files):
        with index.transaction() as writer:
            writer.put_file(*file_of(f"{file}.md", *long_texts(f"file{file}", 60)), building=number)
    with index.transaction() as writer:
        writer.publish(number)


def rows_of(index: SqliteStore, table: str) -> int:
    with index.snapshot() as reader:
        rows: int = reader.db.rows(f"SELECT count(*) FROM {table}_docsize")[0][0]
        return rows


def pages_of(reader: SqliteSnapshot) -> int:
    pages: int = reader.db.rows("PRAGMA page_count")[0][0]
    return pages


def test_the_words_of_the_generation_before_are_emptied_in_rounds(index: SqliteStore) -> None:
    for file in range(40):
        put(index, f"{file}.md", *long_texts(f"file{file}", 60))
    rebuild(index, 40)
    assert (rows_of(index, WORDS[0]), rows_of(index, WORDS[1])) == (2400, 2400)
    assert steps(index) > 20
    assert (rows_of(index, WORDS[0]), rows_of(index, WORDS[1])) == (0, 2400)
    with index.snapshot() as reader:
        ((segments,),) = reader.db.rows(f"SELECT count(*) FROM {WORDS[0]}_data")
        assert segments == 2, "only its head and its averages are left"
        assert reader.integrity_problems() == []
        assert len(reader.search_keywords(any_of("passage"), 5000)) == 2400


def test_rebuild_after_rebuild_changes_tables_and_leaves_one_full(index: SqliteStore) -> None:
    for _ in range(3):
        rebuild(index, 4)
        steps(index)
        assert sorted(rows_of(index, table) for table in WORDS) == [0, 240]


def test_space_is_freed_after_a_rebuild(index: SqliteStore) -> None:
    for file in range(60):
        put(index, f"{file}.md", *long_texts(f"file{file}", 60))
    steps(index)
    index.close()
    one = Path(index.path).stat().st_size
    rebuild(index, 60)
    index.close()
    assert Path(index.path).stat().st_size > 1.4 * one
    steps(index)
    index.close()
    assert Path(index.path).stat().st_size < 1.3 * one


def test_space_is_freed_before_old_words_are_copied_in_a_merge(index: SqliteStore) -> None:
    """Otherwise the log of the merge would come on top of two whole generations."""
    for file in range(60):
        put(index, f"{file}.md", *long_texts(f"file{file}", 60))
    with index.transaction() as writer:
        writer.sweep()  # An interrupted merge.
        assert writer.meta.number(f"merging_{WORDS[0]}")
    rebuild(index, 60)
    with index.snapshot() as reader:
        assert not reader.meta.number(f"merging_{WORDS[0]}")
        two = pages_of(reader)
    while True:
        with index.transaction() as writer:
            assert writer.sweep()
        with index.snapshot() as reader:
            if reader.meta.number(f"merging_{WORDS[0]}"):
                assert pages_of(reader) < two
                return


@pytest.mark.parametrize(
    ("dead", "seconds", "expected"),
    [
        (1, 0.0, [4, 8, 16, 32, 64, 64]),
        (1, 0.03, [4] * 6),
        (1, 0.2, [4, 2, 1, 1, 1, 1]),
        (0, 0.0, [64] * 6),
        (0, 0.2, [64, 32, 16, 8, 4, 2]),
    ],
)
def test_a_merge_keeps_its_steps_short(
    index: SqliteStore,
    monkeypatch: pytest.MonkeyPatch,
    dead: int,
    seconds: float,
    expected: list[int],
) -> None:
    clock, asked = [0.0], list[int]()

    def merge(writer: SqliteTransaction, table: str, pages: int) -> int:
        asked.append(abs(pages))
        clock[0] += seconds
        return 2

    for file in range(10):
        put(index, f"{file}.md", *long_texts(f"file{file}", 60))
    if dead:
        put(index, "0.md", "a passage in the place of sixty")
    monkeypatch.setattr(sweeping, "_merge", merge)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    for _ in expected:
        with index.transaction() as writer:
            sweeping._merge_all(writer, WORDS[0])
    # The dead rows take a tenth off, and a step of one page stays one.
    assert asked == [pytest.approx(pages, rel=0.15, abs=1) for pages in expected]


def test_a_merge_takes_smaller_steps_where_the_log_counts(index: SqliteStore) -> None:
    for file in range(10):
        put(index, f"{file}.md", *long_texts(f"file{file}", 60))
    with index.transaction() as writer:
        assert sweeping._pages(writer) == sweeping.MERGE_PAGES
        writer.begin_rebuild()
        assert sweeping._pages(writer) < sweeping.MERGE_PAGES


def test_deleting_everything_frees_almost_all_space(index: SqliteStore) -> None:
    for file in range(60):
        put(index, f"{file}.md", *long_texts(f"file{file}", 60))
    index.close()
    for file in range(60):
        with index.transaction() as writer:
            writer.delete_file(f"{file}.md")
    assert steps(index) > 3
    index.close()
    with index.snapshot() as reader:
        assert reader.state().chunks == 0
        assert reader.db.rows(
            "SELECT (SELECT count(*) FROM chunks), (SELECT count(*) FROM files)"
        ) == [(0, 0)]
    assert Path(index.path).stat().st_size < 1_000_000


def test_rows_beyond_half_are_only_marked_until_their_words_are_merged(
    index: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "FEW_DEAD", 50)
    for file in range(10):
        put(index, f"{file}.md", *long_texts(f"file{file}", 30))
    for file in range(8):
        with index.transaction() as writer:
            writer.delete_file(f"{file}.md")
    with index.snapshot() as reader:
        assert reader.state().has_dead
        assert sorted(reader.files()) == ["8.md", "9.md"]
        assert len(reader.search_keywords(any_of("passage"), 1000)) == 60
    steps(index)
    with index.snapshot() as reader:
        assert not reader.state().has_dead
        assert len(reader.search_keywords(any_of("passage"), 1000)) == 60
        assert reader.integrity_problems() == []


def test_many_small_commits_end_in_one_segment(index: SqliteStore) -> None:
    for file in range(30):
        put(index, f"{file}.md", "a passage")
    with index.snapshot() as reader:
        assert reader.state().loose_words == 30
    assert steps(index) > 0
    with index.snapshot() as reader:
        assert reader.state().loose_words == 0
        assert len(reader.db.rows(f"SELECT DISTINCT segid FROM {reader.words}_idx")) == 1
    assert steps(index) == 0


def test_a_long_index_run_never_gathers_too_many_segments(index: SqliteStore) -> None:
    for file in range(3 * sweeping.TOO_MANY_LOOSE):
        put(index, f"{file}.md", "a passage")
    with index.snapshot() as reader:
        assert (
            len(reader.db.rows(f"SELECT DISTINCT segid FROM {reader.words}_idx"))
            < 2 * sweeping.TOO_MANY_LOOSE
        )


@pytest.fixture
def pinned(index: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> apsw.Connection:
    """A reader of another program that keeps its snapshot."""
    monkeypatch.setattr(store, "LOG_FULL_BYTES", 3_000_000)
    put(index, "a.md", "before")
    other = apsw.Connection(index.path, flags=apsw.SQLITE_OPEN_READONLY)
    other.execute("BEGIN; SELECT count(*) FROM chunks").fetchall()
    return other


def test_writers_are_refused_when_the_log_is_full(
    index: SqliteStore, pinned: apsw.Connection
) -> None:
    with pytest.raises(IndexBusy, match="its log is full"):
        for number in range(100):
            with index.transaction(timeout=0) as writer:
                writer.put_file(*file_of(f"{number}.md", *long_texts("x", 400)))
    assert Path(index.path + "-wal").stat().st_size < 6_000_000
    with index.snapshot() as reader:
        assert "0.md" in reader.files()
    pinned.close()
    put(index, "after.md", "after")
    assert Path(index.path + "-wal").stat().st_size < 3_000_000


def test_the_log_is_emptied_after_the_reader_ends_without_another_write(
    index: SqliteStore, pinned: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LOG_RETRY_SECONDS", 3600.0)
    monkeypatch.setattr(store, "LOG_LIMIT_BYTES", 500_000)
    for number in range(3):
        put(index, f"{number}.md", *long_texts("x", 200))
    assert Path(index.path + "-wal").stat().st_size > 500_000
    timer = index._timer
    assert timer is not None
    timer.function()
    assert Path(index.path + "-wal").stat().st_size > 500_000
    again = index._timer
    assert again is not None
    pinned.close()
    again.function()
    assert Path(index.path + "-wal").stat().st_size == 0
    assert index._timer is None
    for left in (timer, again):
        left.cancel()


def test_the_longest_transaction_is_known(index: SqliteStore) -> None:
    assert index.longest_write == 0.0
    put(index, "a.md", "text")
    assert index.longest_write > 0.0
