"""Whatever the texts: PostgreSQL finds the best chunks of scoring all, as long as the bound on a
score is one that BM25 never exceeds."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clawmark.model.values import KeywordQuery
from clawmark.store.postgres import keywords
from clawmark.store.postgres.store import PostgresStore
from clawmark.testing.vectors import file_of

WORDS = ["ash", "birch", "cedar", "dogwood", "elm", "fir", "gum", "hazel", "ivy", "juniper"]

WEIGHTS = [1.0 / (at + 1) ** 1.2 for at in range(len(WORDS))]
CHUNKS = 120

queries = st.lists(
    st.sampled_from([*WORDS[1:], "ash birch", "nowhere"]), min_size=2, max_size=9, unique=True
)


def random_texts(seed: int) -> list[str]:
    """Texts of very different lengths, in which the first words are common and the last rare."""
    chance = random.Random(seed)
    return [
        " ".join(chance.choices(WORDS, WEIGHTS, k=chance.randint(1, 4) ** 2)) for _ in range(CHUNKS)
    ]


@pytest.mark.parametrize("is_large", [False, True])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10**6), terms=queries, stated_only=st.booleans(), limit=st.integers(1, 12)
)
def test_the_best_chunks_are_those_of_scoring_all(
    postgres_index: PostgresStore,
    is_large: bool,
    seed: int,
    terms: list[str],
    stated_only: bool,
    limit: int,
) -> None:
    query = KeywordQuery(tuple(terms), stated_only=stated_only)
    texts = random_texts(seed)
    row, chunks, _ = file_of("a.md", *texts)
    columns = [
        ("", "", text) if at % 4 == 3 else (text, "ash elm" if at % 3 else "", "")
        for at, text in enumerate(texts)
    ]
    with postgres_index.transaction() as writer:
        keys = writer.put_file(row, chunks, columns)
    with pytest.MonkeyPatch.context() as patch, postgres_index.snapshot() as snapshot:
        patch.setattr(keywords, "FIRST_CHUNKS", 2)
        if is_large:
            patch.setattr(keywords, "FEW_CHUNKS", 0)
            patch.setattr(keywords, "LIKELY_TF", keywords.MOST_TF)
            patch.setattr(keywords, "NEGLIGIBLE", 0.0)
            patch.setattr(keywords, "MOST_TERMS", 12)
        else:
            patch.setattr(keywords, "MOST_TERMS", 3)
        best = snapshot.search_keywords(query, limit)
        (scores,) = snapshot.score_keywords([query], keys)
    every = sorted(scores.values(), reverse=True)
    assert [score for _, score in best] == pytest.approx(every[:limit])
    assert [score for _, score in best] == pytest.approx([scores[key] for key, _ in best])
    assert len({key for key, _ in best}) == len(best)
