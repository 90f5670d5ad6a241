"""Counts of common words are kept between searches and follow what is added and deleted."""

from __future__ import annotations

import pytest

from clawmark.model.values import KeywordQuery
from clawmark.store.sqlite.keywords import counts
from clawmark.store.sqlite.keywords.counts import KeptCounts, WordCounts
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing.store_samples import any_of, put


@pytest.fixture(autouse=True)
def _keep_small_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "COMMON", 10)


def heron(index: SqliteStore, kept: KeptCounts) -> int:
    with index.snapshot() as snapshot:
        return WordCounts(snapshot.db, snapshot.words_state(), kept).of_query(any_of("heron"))


def test_only_counts_of_common_words_are_kept(index: SqliteStore) -> None:
    put(index, "a.md", *["a heron"] * 20, "an otter")
    kept: KeptCounts = {}
    with index.snapshot() as snapshot:
        words = WordCounts(snapshot.db, snapshot.words_state(), kept)
        assert words.of_query(any_of("heron")) == 20
        assert words.of_query(any_of("otter")) == 1
        assert words.of_query(any_of("heron", "otter")) == 21
    assert [(key[-2:], count.rows) for key, count in kept.items()] == [(("heron", False), 20)]


def test_added_rows_are_added_to_a_kept_count(index: SqliteStore) -> None:
    put(index, "a.md", *["a heron"] * 20)
    kept: KeptCounts = {}
    assert heron(index, kept) == 20
    put(index, "b.md", "another heron", "an otter")
    assert heron(index, kept) == 21
    assert heron(index, kept) == 21


def test_a_count_is_made_again_when_deletions_could_change_it(index: SqliteStore) -> None:
    for number in range(30):
        put(index, f"{number}.md", f"heron {number}")
    kept: KeptCounts = {}
    assert heron(index, kept) == 30
    with index.transaction() as writer:
        writer.delete_file("7.md")
    assert heron(index, kept) == 29


def test_a_count_stays_while_deletions_are_less_than_a_hundredth(index: SqliteStore) -> None:
    put(index, "a.md", *["a heron"] * 400)
    put(index, "b.md", "an otter", "a heron")
    kept: KeptCounts = {}
    assert heron(index, kept) == 401
    with index.transaction() as writer:
        writer.delete_file("b.md")
    assert heron(index, kept) == 401
    assert heron(index, {}) == 400


def test_an_older_snapshot_does_not_use_a_newer_count(index: SqliteStore) -> None:
    put(index, "a.md", *["a heron"] * 20)
    kept: KeptCounts = {}
    with index.snapshot() as older:
        put(index, "b.md", "another heron")
        assert heron(index, kept) == 21
        words = WordCounts(older.db, older.words_state(), kept)
        assert words.of_query(any_of("heron")) == 20


def test_a_rebuild_has_counts_of_its_own(index: SqliteStore) -> None:
    put(index, "a.md", *["a heron"] * 20)
    with index.snapshot() as snapshot:
        assert snapshot.count_keywords([any_of("heron")]) == (20, [20])
    number = index.begin_rebuild({})
    put(index, "a.md", *["a heron"] * 12, building=number)
    with index.snapshot() as snapshot:
        assert snapshot.count_keywords([any_of("heron")]) == (20, [20])
    with index.transaction() as writer:
        assert writer.publish(number) == []
    with index.snapshot() as snapshot:
        assert snapshot.count_keywords([any_of("heron")]) == (12, [12])


def test_counts_of_a_rolled_back_transaction_are_not_kept(index: SqliteStore) -> None:
    put(index, "a.md", *["a heron"] * 20)
    stated = KeywordQuery(("heron",), stated_only=True)
    with pytest.raises(ZeroDivisionError), index.transaction() as writer:
        writer.delete_file("a.md")
        assert writer.count_keywords([stated]) == (0, [0])
        raise ZeroDivisionError
    with index.transaction() as writer:
        assert writer.count_keywords([stated]) == (20, [20])


def test_the_number_of_kept_counts_is_limited(
    index: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "MOST_KEPT", 3)
    put(index, "a.md", *["one two three four five"] * 20)
    kept: KeptCounts = {}
    with index.snapshot() as snapshot:
        words = WordCounts(snapshot.db, snapshot.words_state(), kept)
        found = [words.of_query(any_of(word)) for word in ("one", "two", "three", "four", "five")]
    assert found == [20] * 5
    assert len(kept) <= 3
