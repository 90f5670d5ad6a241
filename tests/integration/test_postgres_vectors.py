"""Vector search in PostgreSQL finds what comparing all vectors finds, with and without HNSW."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from clawmark.embed.local.static import StaticEmbedder
from clawmark.model.values import Filters, Vector
from clawmark.store.postgres import vectors
from clawmark.store.postgres.servers import Server
from clawmark.store.postgres.store import PostgresStore
from clawmark.store.postgres.vector_indexes import VectorIndexes, make_vector_indexes
from clawmark.store.similarity import dot_products
from clawmark.testing.vectors import fill

DOCS = Path(__file__).parents[2] / "docs"
WANTED, DIMS = 24, 256
PASSAGES, QUESTIONS = 2000, 60


@pytest.fixture(scope="module")
def sample() -> tuple[list[Vector], list[Vector]]:
    """Vectors of passages and of questions: real sentences of this project's own pages."""
    lines = {
        line.strip()
        for page in sorted(DOCS.rglob("*.md"))
        for line in page.read_text(encoding="utf-8").splitlines()
        if len(line) > 40
    }
    embedder = StaticEmbedder()
    covered = [line for line in sorted(lines) if embedder.covers(line)]
    made = list(dict.fromkeys(embedder.embed_texts(covered[: PASSAGES + QUESTIONS])))
    step = len(made) // QUESTIONS
    questions = made[::step][:QUESTIONS]
    return [vector for vector in made if vector not in set(questions)], questions


class Filled(NamedTuple):
    """An index, and the vector of each of its chunks by path and key."""

    store: PostgresStore
    vectors: dict[str, dict[int, Vector]]

    def exact(self, question: Vector, filters: Filters) -> list[int]:
        """Compare all vectors; the chunks with the same cosine are in the order of their keys."""
        known = {
            key: vector
            for path, some in self.vectors.items()
            if not filters.path or path == filters.path
            for key, vector in some.items()
        }
        cosines = dict(zip(known, dot_products(question, list(known.values())), strict=True))
        return sorted(known, key=lambda key: (-cosines[key], key))[:WANTED]


@pytest.fixture
def filled(postgres_index: PostgresStore, sample: tuple[list[Vector], list[Vector]]) -> Filled:
    """An index with the sample, of which some passages occur twice."""
    files = {"memory/a.md": sample[0], "memory/b.md": sample[0][:20]}
    return Filled(
        postgres_index,
        {
            path: dict(zip(fill(postgres_index, path, some, DIMS), some, strict=True))
            for path, some in files.items()
        },
    )


def recall(filled: Filled, questions: Sequence[Vector], filters: Filters) -> float:
    """Return which share of the exact answers is found when no more than those are asked for."""
    found = 0
    with filled.store.snapshot() as snapshot:
        (space,) = snapshot.spaces()
        narrowed = snapshot.within(filters) if any(filters) else snapshot
        for question in questions:
            answer = {key for key, _ in narrowed.nearest(space.id, question, WANTED)}
            assert len(answer) == WANTED
            found += len(answer.intersection(filled.exact(question, filters)))
    return found / (WANTED * len(questions))


@pytest.mark.parametrize("filters", [Filters(), Filters(path="memory/a.md")])
@pytest.mark.parametrize("with_index", [False, True])
def test_the_nearest_are_those_of_an_exact_comparison(
    with_index: bool,
    filters: Filters,
    filled: Filled,
    sample: tuple[list[Vector], list[Vector]],
    postgres_uri: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert len(sample[0]) > 1500
    if with_index:
        monkeypatch.setattr(vectors, "LARGE_SPACE", 1000)
        with Server(postgres_uri).direct() as connection:
            (name,) = make_vector_indexes(connection, large=1000)
            assert make_vector_indexes(connection, large=1000) == []
            before = uses(postgres_uri, name)
    assert recall(filled, sample[1], filters) >= (0.98 if with_index else 1)
    filled.store.close()
    if with_index:
        assert uses(postgres_uri, name) - before >= QUESTIONS


def uses(uri: str, index: str) -> int:
    """How often an index was used by ended connections."""
    with Server(uri).direct() as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        row = connection.execute(
            "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = %s", (index,)
        ).fetchone()
    return int(row[0]) if row else 0


def test_the_index_of_a_dropped_space_is_removed(filled: Filled, postgres_uri: str) -> None:
    store = filled.store
    with Server(postgres_uri).direct() as connection:
        assert len(make_vector_indexes(connection, large=1000)) == 1
        with store.transaction() as transaction:
            transaction.drop_space(transaction.spaces()[0].id)
        make_vector_indexes(connection, large=1000)
        assert VectorIndexes.read(connection, large=1000) == ((), ())
