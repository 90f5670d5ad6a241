"""Keyword search gives FTS5's own scores, whichever way it chooses and reads rows."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from clawmark.model.values import Filters, KeywordQuery
from clawmark.store.sqlite.keywords.bm25 import rarity
from clawmark.store.sqlite.keywords.expressions import threshold_expression
from clawmark.store.sqlite.keywords.reader import KeywordReader, Limits
from clawmark.store.sqlite.snapshot import SqliteSnapshot
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing.store_samples import any_of
from clawmark.testing.vectors import file_of

WORDS = [f"word{letter}" for letter in "abcdefghijklmnop"]
EVERYTHING = Limits(few_rows=10**9, rows_per_lookup=10**9)
SELECTED = Limits(
    few_rows=0, many_rows=0, first_rows=5, enough_rows=40, most_rows=100, rows_per_lookup=0
)
QUERIES = [
    any_of("worda", "wordh", "wordp"),
    any_of("wordo wordn", "wordb"),
    KeywordQuery(("wordc", "wordm"), stated_only=True),
    KeywordQuery(pairs=(("wordj", "wordk"), ("worda", "wordl")), stated_only=True),
    KeywordQuery(("wordi",), (("wordd", "worde"),)),
]


def texts(count: int, seed: int, words: Sequence[str] = WORDS) -> list[str]:
    """Random texts in which the first words are common and the last ones rare."""
    chance = random.Random(seed)
    weights = [1.0 / (at + 1) ** 1.5 for at in range(len(words))]
    return [" ".join(chance.choices(words, weights, k=chance.randint(3, 30))) for _ in range(count)]


def put_texts(index: SqliteStore, name: str, some: Sequence[str]) -> None:
    """Store texts; every fifth one is also a question, and every third one has a heading."""
    row, chunks, words = file_of(name, *some)
    columns = [
        (text, context if at % 3 else "worde wordf", text if at % 5 == 0 else "")
        for at, (text, context) in enumerate(words)
    ]
    with index.transaction() as writer:
        writer.put_file(row, chunks, columns)


def reader_with(snapshot: SqliteSnapshot, limits: Limits) -> KeywordReader:
    return KeywordReader(snapshot.db, snapshot.words_state(), {}, limits)


@pytest.fixture
def filled(index: SqliteStore) -> SqliteStore:
    put_texts(index, "a.md", texts(400, seed=1))
    return index


@pytest.mark.parametrize("query", QUERIES)
def test_looked_up_rows_have_the_scores_of_fts5(query: KeywordQuery, filled: SqliteStore) -> None:
    with filled.snapshot() as snapshot:
        keys = [key for (key,) in snapshot.db.rows("SELECT key FROM chunks")]
        (expected,) = reader_with(snapshot, EVERYTHING).score([query], keys)
        looking_up = reader_with(snapshot, SELECTED)
        (scores,) = looking_up.score([query], keys)
    assert expected
    assert scores == pytest.approx(expected, rel=1e-12)
    assert looking_up.ranked >= len(expected)


def test_several_queries_are_scored_together_as_one_by_one(filled: SqliteStore) -> None:
    with filled.snapshot() as snapshot:
        keys = [key for (key,) in snapshot.db.rows("SELECT key FROM chunks WHERE key % 7 = 0")]
        looking_up = reader_with(snapshot, SELECTED)
        together = looking_up.score(QUERIES, keys)
        assert together == [looking_up.score([query], keys)[0] for query in QUERIES]
        assert looking_up.score(QUERIES, []) == [{}] * len(QUERIES)


def test_ranked_rows_have_the_scores_of_fts5(filled: SqliteStore) -> None:
    query = any_of("wordb", "wordf", "wordk", "wordp")
    with filled.snapshot() as snapshot:
        every = dict(reader_with(snapshot, EVERYTHING).search(query, 1000))
        some = reader_with(snapshot, SELECTED).search(query, 10)
    assert len(some) == 10 < len(every)
    for key, score in some:
        assert score == pytest.approx(every[key], rel=1e-12)


def test_an_expression_finds_the_rows_whose_terms_are_worth_enough(filled: SqliteStore) -> None:
    terms = ["wordp", "wordk", "wordf", "wordb"]
    with filled.snapshot() as snapshot:
        reader = reader_with(snapshot, EVERYTHING)
        total = reader.counts.rows()
        worth = {term: rarity(reader.counts.of_phrase(term, stated_only=False), total)
                 for term in terms}  # fmt: skip
        rows = dict(snapshot.db.rows("SELECT key, text FROM chunks"))
        headed = {key for key, _ in reader.search(any_of("wordf"), 1000)}
        for least in (0.01, worth["wordf"], worth["wordk"] + 0.1, sum(worth.values())):
            expression, _ = threshold_expression(any_of(*terms), worth, least)
            table = snapshot.words
            found = snapshot.db.rows(
                f"SELECT rowid FROM {table} WHERE {table} MATCH ?", (expression,)
            )
            held = {
                key: {*text.split(), *(["wordf"] if key in headed else [])}
                for key, text in rows.items()
            }
            assert {key for (key,) in found} == {
                key
                for key, words in held.items()
                if sum(worth[term] for term in terms if term in words) >= least - 1e-9
            }


def test_terms_that_occur_nowhere_are_ignored(filled: SqliteStore) -> None:
    with filled.snapshot() as snapshot:
        reader = reader_with(snapshot, SELECTED)
        known = reader.search(any_of("worda", "wordk"), 5)
        assert reader.search(any_of("worda", "nowhere", "...", "wordk"), 5) == known
        assert reader.search(any_of("nowhere"), 5) == []


def test_fewer_matches_than_asked_for_are_all_found(filled: SqliteStore) -> None:
    query = any_of(*WORDS[6:])  # more terms than decide which rows are ranked
    with filled.snapshot() as snapshot:
        every = reader_with(snapshot, EVERYTHING).search(query, 200)
        some = reader_with(snapshot, SELECTED._replace(most_rows=10**6)).search(query, 200)
    assert 100 < len(every) == len(some)
    assert {key for key, _ in some} == {key for key, _ in every}


def test_filters_apply_to_selected_rows(index: SqliteStore) -> None:
    put_texts(index, "a.md", texts(300, seed=2))
    put_texts(index, "notes/b.md", texts(30, seed=3))
    query = any_of("worda", "wordc", "wordg")
    with index.snapshot() as snapshot:
        narrowed = snapshot.within(Filters(path="notes/*.md"))
        expected = narrowed.search_keywords(query, 10)
        narrowed._keywords = reader_with(snapshot, SELECTED)
        found = narrowed.search_keywords(query, 10)
    assert [key for key, _ in found] == [key for key, _ in expected]
    assert len(found) == 10


def test_of_rows_with_every_term_those_indexed_last_are_ranked(index: SqliteStore) -> None:
    put_texts(index, "a.md", ["worda wordb"] * 300)
    with index.snapshot() as snapshot:
        found = reader_with(snapshot, SELECTED).search(any_of("worda", "wordb"), 5)
        (newest,) = snapshot.db.rows("SELECT max(key) FROM chunks")[0]
    assert all(key > newest - SELECTED.most_rows for key, _ in found)


def test_too_many_rows_with_every_term_are_all_ranked_in_a_moderate_index(
    index: SqliteStore,
) -> None:
    put_texts(index, "a.md", [*["worda wordb"] * 3, "worda", *["worda wordb wordc"] * 300])
    query = any_of("worda", "wordb")
    with index.snapshot() as snapshot:
        moderate = reader_with(snapshot, SELECTED._replace(many_rows=1000))
        every = reader_with(snapshot, EVERYTHING).search(query, 5)
        assert moderate.search(query, 5) == every


def test_the_number_of_ranked_rows_does_not_grow_with_the_index(index: SqliteStore) -> None:
    vocabulary = [f"word{number}" for number in range(300)]
    query = any_of("word0", "word2", "word9", "word30", "word90")
    limits = Limits(few_rows=0, many_rows=0, first_rows=50, enough_rows=100, most_rows=1000)
    ranked, pages = [], []
    for size in (1000, 7000):  # the index has 1,000 rows, then 8,000
        put_texts(index, f"{size}.md", texts(size, seed=size, words=vocabulary))
        index.tidy(force=True)
        with index.snapshot() as snapshot:
            reader = reader_with(snapshot, limits)
            for term in query.terms:
                reader.counts.of_phrase(term, stated_only=False)
            before = snapshot.db.pages_read()
            assert len(reader.search(query, 10)) == 10
            ranked.append(reader.ranked)
            pages.append(snapshot.db.pages_read() - before)
    assert 0 < ranked[1] <= 2 * ranked[0]
    assert 0 < pages[1] <= 4 * pages[0]
