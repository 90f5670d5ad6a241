"""Whatever the texts: with the bound that BM25 never exceeds, ranking some rows finds the same best
ones as ranking all."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clawmark.model.values import KeywordQuery
from clawmark.store.sqlite.keywords.bm25 import MOST_TF
from clawmark.store.sqlite.keywords.reader import KeywordReader, Limits
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing.vectors import file_of

WORDS = ["ash", "birch", "cedar", "dogwood", "elm", "fir", "gum", "hazel", "ivy", "juniper"]
EVERYTHING = Limits(few_rows=10**9)
SAFE = Limits(few_rows=0, first_rows=2, enough_rows=10**9, most_rows=10**9, likely_tf=MOST_TF)

# Smaller numbers are likelier, so the first words are common and the last ones rare.
words = st.integers(0, 99).map(lambda number: WORDS[number * number // 1000])
texts = st.lists(st.lists(words, min_size=1, max_size=12).map(" ".join), min_size=1, max_size=60)
queries = st.lists(st.sampled_from([*WORDS, "ash birch", "nowhere"]), min_size=1, unique=True)


@settings(max_examples=60)
@given(texts=texts, terms=queries, stated_only=st.booleans(), limit=st.integers(1, 12))
def test_the_best_rows_are_those_of_ranking_all(
    texts: list[str], terms: list[str], stated_only: bool, limit: int
) -> None:
    query = KeywordQuery(tuple(terms), stated_only=stated_only)
    with TemporaryDirectory() as folder:
        index = SqliteStore(str(Path(folder) / "index.sqlite"))
        with index.transaction() as writer:
            row, chunks, _ = file_of("a.md", *texts)
            columns = [
                ("", "", text) if at % 4 == 3 else (text, "ash elm" if at % 3 else "", "")
                for at, text in enumerate(texts)
            ]
            writer.put_file(row, chunks, columns)
        with index.snapshot() as snapshot:
            state = snapshot.words_state()
            every = KeywordReader(snapshot.db, state, {}, EVERYTHING).search(query, 1000)
            best = KeywordReader(snapshot.db, state, {}, SAFE).search(query, limit)
        index.close()
    scores = dict(every)
    assert [score for _, score in best] == pytest.approx([score for _, score in every[:limit]])
    assert [score for _, score in best] == pytest.approx([scores[key] for key, _ in best])
    assert len({key for key, _ in best}) == len(best)
