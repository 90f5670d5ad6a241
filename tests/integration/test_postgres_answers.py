"""PostgreSQL gives the answers of SQLite: the same hits, the same scores, from the same words."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import date, datetime
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.engine.sync.text import words_of
from clawmark.model.values import Filters, Hit, KeywordQuery
from clawmark.store.base import IndexStore
from clawmark.store.postgres import keywords
from clawmark.store.postgres.store import PostgresStore
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing.store_samples import any_of
from clawmark.testing.vectors import file_of, fill, random_vectors
from clawmark.workspace.sample import QUESTIONS, write_sample

VOCABULARY = """
heron plan lake otter billing database postgres deciding decided Köln naïve
v2.3.1 a/b.md user@example.com 数据库 迁移 上海机房 東京タワー データベース
กรุงเทพ 한국어 데이터 Ελλάδα
привет مرحبا हिन्दी the of and foo_bar x1 🤖done straße
""".split()  # noqa: SIM905
QUERIES = (
    any_of("heron"),
    any_of("plan", "lake", "absent"),
    any_of("数 据", "据 库"),
    any_of("上 海", "海 机", "机 房", "上"),
    any_of("v2 3 1", "heron"),
    any_of("heron plan lake"),
    any_of("ก ร ุ", "ร ุ ง"),
    any_of("the", "of", "heron", "the"),
    any_of("decision", "decide", "koln", "strasse", "straße"),
    KeywordQuery(("heron", "数 据"), stated_only=True),
    KeywordQuery(("heron",), pairs=(("plan", "lake"), ("数 据", "heron plan"))),
    KeywordQuery(pairs=(("heron", "otter"),), distance=2),
    KeywordQuery(pairs=(("heron", "heron"), ("foo bar", "x1")), stated_only=True, distance=20),
    any_of("", "!!", '"'),
)


def sample_file(chance: random.Random, number: int) -> tuple[str, list[str]]:
    texts = []
    for _ in range(chance.randrange(1, 6)):
        words = chance.choices(VOCABULARY, k=chance.randrange(1, 60))
        asked = " ".join(chance.choices(VOCABULARY, k=8))
        texts.append(" ".join(words) + (f"\nuser: where is {asked}?" if number % 3 == 0 else ""))
    return f"memory/{number:03}.md", texts


def write_worlds(stores: Sequence[IndexStore], seed: int) -> dict[int, int]:
    """Make the same changes in all stores; return the keys of the second for those of the first."""
    chance = random.Random(seed)
    files = dict(sample_file(chance, number) for number in range(60))
    for store in stores:
        for path, texts in files.items():
            row, chunks, _ = file_of(path, *texts)
            words = [
                (text, path, " ".join(text.split()[:3])) if number % 2 else (text, path)
                for number, text in enumerate(texts)
            ]
            with store.transaction() as transaction:
                transaction.put_file(row, chunks, words)
        with store.transaction() as transaction:
            for path in list(files)[::7]:
                transaction.delete_file(path)
        store.tidy(force=True)
    keys: list[list[int]] = []
    for store in stores:
        with store.snapshot() as snapshot:
            keys.append(
                [
                    chunk.key
                    for path in sorted(snapshot.files())
                    for chunk in snapshot.chunks_of(path)
                ]
            )
    return dict(zip(*keys, strict=True))


@pytest.fixture
def both(tmp_path: Path, postgres_index: PostgresStore) -> Iterator[tuple[SqliteStore, IndexStore]]:
    with closing(SqliteStore(str(tmp_path / "index.sqlite"))) as sqlite:
        yield sqlite, postgres_index


@pytest.mark.parametrize("seed", [1, 2])
def test_keyword_scores_and_counts_are_those_of_sqlite(
    both: tuple[SqliteStore, IndexStore], seed: int
) -> None:
    same = write_worlds(both, seed)
    sqlite, postgres = both
    with sqlite.snapshot() as expected, postgres.snapshot() as actual:
        assert actual.count_keywords(QUERIES) == expected.count_keywords(QUERIES)
        for query in QUERIES:
            want = {same[key]: score for key, score in expected.search_keywords(query, 1000)}
            have = dict(actual.search_keywords(query, 1000))
            assert have.keys() == want.keys(), query
            assert have == pytest.approx(want, abs=1e-6), query
            (again,) = actual.score_keywords([query], list(same.values()))
            assert again == pytest.approx(have, abs=1e-9), query
        few = Filters(path="memory/00*.md")
        want_few = [same[key] for key, _ in expected.within(few).search_keywords(QUERIES[1], 5)]
        assert [key for key, _ in actual.within(few).search_keywords(QUERIES[1], 5)] == want_few


def look_for_few_chunks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the scope a large one, and the bound on scores one that no chunk exceeds."""
    monkeypatch.setattr(keywords, "FIRST_CHUNKS", 3)
    monkeypatch.setattr(keywords, "FEW_CHUNKS", 5)
    monkeypatch.setattr(keywords, "LIKELY_TF", keywords.MOST_TF)
    monkeypatch.setattr(keywords, "NEGLIGIBLE", 0.0)


@pytest.mark.parametrize("is_large", [False, True])
def test_scoring_few_chunks_first_gives_the_same_answers(
    both: tuple[SqliteStore, IndexStore], monkeypatch: pytest.MonkeyPatch, is_large: bool
) -> None:
    same = write_worlds(both, 3)
    sqlite, postgres = both
    look_for_few_chunks_first(monkeypatch)
    if not is_large:
        monkeypatch.setattr(keywords, "FEW_CHUNKS", 20_000)
        monkeypatch.setattr(keywords, "MOST_TERMS", 2)
    many = Filters(path="memory/0[0-4]*.md")
    with sqlite.snapshot() as expected, postgres.snapshot() as actual:
        for want_from, have_from in (
            (expected, actual),
            (expected.within(many), actual.within(many)),
        ):
            for query in QUERIES:
                want = [(same[key], score) for key, score in want_from.search_keywords(query, 5)]
                have = have_from.search_keywords(query, 5)
                assert [score for _, score in have] == pytest.approx(
                    [score for _, score in want], abs=1e-6
                ), query


def test_common_words_of_a_large_scope_are_scored_exactly(
    both: tuple[SqliteStore, IndexStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    same = write_worlds(both, 4)
    sqlite, postgres = both
    monkeypatch.setattr(keywords, "FIRST_CHUNKS", 3)
    monkeypatch.setattr(keywords, "FEW_CHUNKS", 5)
    monkeypatch.setattr(keywords, "MOST_SCORED", 20)
    with sqlite.snapshot() as expected, postgres.snapshot() as actual:
        for query in QUERIES:
            want = {same[key]: score for key, score in expected.search_keywords(query, 1000)}
            have = dict(actual.search_keywords(query, 5))
            assert len(have) == min(5, len(want)), query
            assert have == pytest.approx({key: want[key] for key in have}, abs=1e-6), query


def test_nearest_vectors_and_cosines_are_those_of_sqlite(
    both: tuple[SqliteStore, IndexStore],
) -> None:
    vectors = random_vectors(300, 64, seed=3)
    answers = []
    for store in both:
        keys = fill(store, "a.md", vectors, 64)
        with store.snapshot() as snapshot:
            (space,) = snapshot.spaces()
            found = [snapshot.nearest(space.id, query, 24) for query in vectors[::30]]
        answers.append([[(keys.index(key), cosine) for key, cosine in one] for one in found])
    for want, have in zip(*answers, strict=True):
        assert [key for key, _ in have] == [key for key, _ in want]
        assert [cosine for _, cosine in have] == pytest.approx([c for _, c in want], abs=1e-6)


def test_hits_of_a_sample_workspace_are_those_of_sqlite(tmp_path: Path, postgres_uri: str) -> None:
    root = tmp_path / "agent"
    root.mkdir()
    write_sample(str(root), date(2026, 2, 24))
    clock = lambda: datetime(2026, 2, 25, 12, 0)  # noqa: E731
    questions = [
        *(question if isinstance(question, str) else question[0] for question in QUESTIONS),
        "database", "what did we decide last week", "who is on call", "v2.3.1", "ferry OR boat",
    ]  # fmt: skip
    answers: list[list[tuple[Hit, ...]]] = []
    for overrides in ({}, {"memorySearch.store.uri": postgres_uri}):
        with Memory.open(
            root,
            state_dir=tmp_path / f"state-{len(answers)}",
            provider="static",
            clock=clock,
            overrides=overrides,
        ) as memory:
            assert memory.sync().added > 20
            answers.append([memory.search(one, max_results=20).hits for one in questions])
            report = memory.verify()
            assert report.problems == ()
    assert sum(map(len, answers[0])) > 20
    for want, have in zip(*answers, strict=True):
        assert [hit.citation for hit in have] == [hit.citation for hit in want]
        assert [hit.snippet for hit in have] == [hit.snippet for hit in want]
        assert [hit.score for hit in have] == pytest.approx([h.score for h in want], abs=1e-6)


def test_words_of_real_passages_are_found_again(postgres_index: PostgresStore) -> None:
    text = "user: Wo liegt der Schlüssel?\nassistant: Unter dem dritten Blumentopf."
    row, chunks, _ = file_of("memory/a.md", text)
    with postgres_index.transaction() as transaction:
        (key,) = transaction.put_file(row, chunks, words_of("memory/a.md", chunks))
    with postgres_index.snapshot() as snapshot:
        assert [one for one, _ in snapshot.search_keywords(any_of("blumentopf"), 5)] == [key]
