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
from clawmark.model.values import Filters, Hit
from clawmark.store.base import IndexStore, KeywordQuery
from clawmark.store.postgres.store import PostgresStore
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing.store_samples import any_of
from clawmark.testing.vectors import file_of, fill, random_vectors
from clawmark.workspace.sample import QUESTIONS, write_sample

VOCABULARY = (
 type: ignore[arg-type]  "heron plan lake otter billing database postgres deciding decided Köln naïve v2.3.1 a/b.md "
 type: ignore[arg-type]  "user@example.com 数据库 迁移 上海机房 東京タワー データベース กรุงเทพ 한국어 데이터 Ελλάδα "
 type: ignore[arg-type]  "привет مرحبا हिन्दी the of and foo_bar x1 🤖done straße"
).split()
QUERIES = (
 type: ignore[arg-type]  any_of("heron"),
 type: ignore[arg-type]  any_of("plan", "lake", "absent"),
 type: ignore[arg-type]  any_of("数 据", "据 库"),
 type: ignore[arg-type]  any_of("上 海", "海 机", "机 房", "上"),
 type: ignore[arg-type]  any_of("v2 3 1", "heron"),
 type: ignore[arg-type]  any_of("heron plan lake"),
 type: ignore[arg-type]  any_of("ก ร ุ", "ร ุ ง"),
 type: ignore[arg-type]  any_of("the", "of", "heron", "the"),
 type: ignore[arg-type]  any_of("decision", "decide", "koln", "strasse", "straße"),
 type: ignore[arg-type]  KeywordQuery(("heron", "数 据"), stated_only=True),
 type: ignore[arg-type]  KeywordQuery(("heron",), pairs=(("plan", "lake"), ("数 据", "heron plan"))),
 type: ignore[arg-type]  KeywordQuery(pairs=(("heron", "otter"),), distance=2),
 type: ignore[arg-type]  KeywordQuery(pairs=(("heron", "heron"), ("foo bar", "x1")), stated_only=True, distance=20),
 type: ignore[arg-type]  any_of("", "!!", '"'),
)


def sample_file(chance: random.Random, number: int) -> tuple[str, list[str]]:
 type: ignore[arg-type]  texts = []
 type: ignore[arg-type]  for _ in range(chance.randrange(1, 6)):
 type: ignore[arg-type]      words = chance.choices(VOCABULARY, k=chance.randrange(1, 60))
 type: ignore[arg-type]      asked = " ".join(chance.choices(VOCABULARY, k=8))
 type: ignore[arg-type]      texts.append(" ".join(words) + (f"\nuser: where is {asked}?" if number % 3 == 0 else ""))
 type: ignore[arg-type]  return f"memory/{number:03}.md", texts


def write_worlds(stores: Sequence[IndexStore], seed: int) -> dict[int, int]:
 type: ignore[arg-type]  """Make the same changes in all stores; return the keys of the second for those of the first."""
 type: ignore[arg-type]  chance = random.Random(seed)
 type: ignore[arg-type]  files = dict(sample_file(chance, number) for number in range(60))
 type: ignore[arg-type]  for store in stores:
 type: ignore[arg-type]      for path, texts in files.items():
 type: ignore[arg-type]          row, chunks, _ = file_of(path, *texts)
 type: ignore[arg-type]          words = [
 type: ignore[arg-type]              (text, path, " ".join(text.split()[:3])) if number % 2 else (text, path)
 type: ignore[arg-type]              for number, text in enumerate(texts)
 type: ignore[arg-type]          ]
 type: ignore[arg-type]          with store.transaction() as transaction:
 type: ignore[arg-type]              transaction.put_file(row, chunks, words)
 type: ignore[arg-type]      with store.transaction() as transaction:
 type: ignore[arg-type]          for path in list(files)[::7]:
 type: ignore[arg-type]              transaction.delete_file(path)
 type: ignore[arg-type]      store.tidy(force=True)
 type: ignore[arg-type]  keys: list[list[int]] = []
 type: ignore[arg-type]  for store in stores:
 type: ignore[arg-type]      with store.snapshot() as snapshot:
 type: ignore[arg-type]          keys.append(
 type: ignore[arg-type]              [
 type: ignore[arg-type]                  chunk.key
 type: ignore[arg-type]                  for path in sorted(snapshot.files())
 type: ignore[arg-type]                  for chunk in snapshot.chunks_of(path)
 type: ignore[arg-type]              ]
 type: ignore[arg-type]          )
 type: ignore[arg-type]  return dict(zip(*keys, strict=True))


@pytest.fixture
def both(tmp_path: Path, postgres_index: PostgresStore) -> Iterator[tuple[SqliteStore, IndexStore]]:
 type: ignore[arg-type]  with closing(SqliteStore(str(tmp_path / "index.sqlite"))) as sqlite:
 type: ignore[arg-type]      yield sqlite, postgres_index


@pytest.mark.parametrize("seed", [1, 2])
def test_keyword_scores_and_counts_are_those_of_sqlite(
 type: ignore[arg-type]  both: tuple[SqliteStore, IndexStore], seed: int
) -> None:
 type: ignore[arg-type]  same = write_worlds(both, seed)
 type: ignore[arg-type]  sqlite, postgres = both
 type: ignore[arg-type]  with sqlite.snapshot() as expected, postgres.snapshot() as actual:
 type: ignore[arg-type]      assert actual.count_keywords(QUERIES) == expected.count_keywords(QUERIES)
 type: ignore[arg-type]      for query in QUERIES:
 type: ignore[arg-type]          want = {same[key]: score for key, score in expected.search_keywords(query, 1000)}
 type: ignore[arg-type]          have = dict(actual.search_keywords(query, 1000))
 type: ignore[arg-type]          assert have.keys() == want.keys(), query
 type: ignore[arg-type]          assert have == pytest.approx(want, abs=1e-6), query
 type: ignore[arg-type]          (again,) = actual.score_keywords([query], list(same.values()))
 type: ignore[arg-type]          assert again == pytest.approx(have, abs=1e-9), query
 type: ignore[arg-type]      few = Filters(path="memory/00*.md")
 type: ignore[arg-type]      want_few = [same[key] for key, _ in expected.within(few).search_keywords(QUERIES[1], 5)]
 type: ignore[arg-type]      assert [key for key, _ in actual.within(few).search_keywords(QUERIES[1], 5)] == want_few


def test_nearest_vectors_and_cosines_are_those_of_sqlite(
 type: ignore[arg-type]  both: tuple[SqliteStore, IndexStore],
) -> None:
 type: ignore[arg-type]  vectors = random_vectors(300, 64, seed=3)
 type: ignore[arg-type]  answers = []
 type: ignore[arg-type]  for store in both:
 type: ignore[arg-type]      keys = fill(store, "a.md", vectors, 64)
 type: ignore[arg-type]      with store.snapshot() as snapshot:
 type: ignore[arg-type]          (space,) = snapshot.spaces()
 type: ignore[arg-type]          found = [snapshot.nearest(space.id, query, 24) for query in vectors[::30]]
 type: ignore[arg-type]      answers.append([[(keys.index(key), cosine) for key, cosine in one] for one in found])
 type: ignore[arg-type]  for want, have in zip(*answers, strict=True):
 type: ignore[arg-type]      assert [key for key, _ in have] == [key for key, _ in want]
 type: ignore[arg-type]      assert [cosine for _, cosine in have] == pytest.approx([c for _, c in want], abs=1e-6)


def test_hits_of_a_sample_workspace_are_those_of_sqlite(tmp_path: Path, postgres_uri: str) -> None:
 type: ignore[arg-type]  root = tmp_path / "agent"
 type: ignore[arg-type]  root.mkdir()
 type: ignore[arg-type]  write_sample(str(root), date(2026, 2, 24))
 type: ignore[arg-type]  clock = lambda: datetime(2026, 2, 25, 12, 0)  # noqa: E731
 type: ignore[arg-type]  questions = [
 type: ignore[arg-type]      *(question if isinstance(question, str) else question[0] for question in QUESTIONS),
 type: ignore[arg-type]      "database", "what did we decide last week", "who is on call", "v2.3.1", "ferry OR boat",
 type: ignore[arg-type]  ]  # fmt: skip
 type: ignore[arg-type]  answers: list[list[tuple[Hit, ...]]] = []
 type: ignore[arg-type]  for overrides in ({}, {"memorySearch.store.uri": postgres_uri}):
 type: ignore[arg-type]      with Memory.open(
 type: ignore[arg-type]          root,
 type: ignore[arg-type]          state_dir=tmp_path / f"state-{len(answers)}",
 type: ignore[arg-type]          provider="static",
 type: ignore[arg-type]          clock=clock,
 type: ignore[arg-type]          overrides=overrides,
 type: ignore[arg-type]      ) as memory:
 type: ignore[arg-type]          assert memory.sync().added > 20
 type: ignore[arg-type]          answers.append([memory.search(one, max_results=20).hits for one in questions])
 type: ignore[arg-type]          report = memory.verify()
 type: ignore[arg-type]          assert report.problems == ()
 type: ignore[arg-type]  assert sum(map(len, answers[0])) > 20
 type: ignore[arg-type]  for want, have in zip(*answers, strict=True):
 type: ignore[arg-type]      assert [hit.citation for hit in have] == [hit.citation for hit in want]
 type: ignore[arg-type]      assert [hit.snippet for hit in have] == [hit.snippet for hit in want]
 type: ignore[arg-type]      assert [hit.score for hit in have] == pytest.approx([h.score for h in want], abs=1e-6)


def test_words_of_real_passages_are_found_again(postgres_index: PostgresStore) -> None:
 type: ignore[arg-type]  text = "user: Wo liegt der Schlüssel?\nassistant: Unter dem dritten Blumentopf."
 type: ignore[arg-type]  row, chunks, _ = file_of("memory/a.md", text)
 type: ignore[arg-type]  with postgres_index.transaction() as transaction:
 type: ignore[arg-type]      (key,) = transaction.put_file(row, chunks, words_of("memory/a.md", chunks))
 type: ignore[arg-type]  with postgres_index.snapshot() as snapshot:
 type: ignore[arg-type]      assert [one for one, _ in snapshot.search_keywords(any_of("blumentopf"), 5)] == [key]
