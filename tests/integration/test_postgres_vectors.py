"""Vector search in PostgreSQL finds what comparing all vectors finds, with and without HNSW."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

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


@pytest.fixture
def filled(
    postgres_index: PostgresStore, sample: tuple[list[Vector], list[Vector]]
) -> Iterator[tuple[PostgresStore, list[int]]]:
    keys = fill(postgres_index, "memory/a.md", sample[0], DIMS)
    fill(postgres_index, "memory/b.md", sample[0][:20], DIMS)
    yield postgres_index, keys


def exact(passages: Sequence[Vector], question: Vector, keys: Sequence[int]) -> set[int]:
    cosines = dot_products(question, passages)
    order = sorted(range(len(passages)), key=lambda at: (-cosines[at], at))
    return {keys[at] for at in order[:WANTED]}


def recall(
    store: PostgresStore,
    keys: Sequence[int],
    sample: tuple[list[Vector], list[Vector]],
    filters: Filters,
) -> float:
    found = 0
    with store.snapshot() as snapshot:
        (space,) = snapshot.spaces()
        narrowed = snapshot.within(filters) if any(filters) else snapshot
        for question in sample[1]:
            answer = {key for key, _ in narrowed.nearest(space.id, question, WANTED + 20)}
            found += len(exact(sample[0], question, keys) & answer)
    return found / (WANTED * len(sample[1]))


@pytest.mark.parametrize("filters", [Filters(), Filters(path="memory/a.md")])
@pytest.mark.parametrize("with_index", [False, True])
def test_the_nearest_are_those_of_an_exact_comparison(
    with_index: bool,
    filters: Filters,
    filled: tuple[PostgresStore, list[int]],
    sample: tuple[list[Vector], list[Vector]],
    postgres_uri: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert len(sample[0]) > 1500
    store, keys = filled
    if with_index:
        monkeypatch.setattr(vectors, "LARGE_SPACE", 1000)
        with Server(postgres_uri).direct() as connection:
            (name,) = make_vector_indexes(connection, large=1000)
            assert make_vector_indexes(connection, large=1000) == []
            before = uses(postgres_uri, name)
    assert recall(store, keys, sample, filters) >= 0.98
    store.close()
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


def test_the_index_of_a_dropped_space_is_removed(
    filled: tuple[PostgresStore, list[int]], postgres_uri: str
) -> None:
    store, _ = filled
    with Server(postgres_uri).direct() as connection:
        assert len(make_vector_indexes(connection, large=1000)) == 1
        with store.transaction() as transaction:
            transaction.drop_space(transaction.spaces()[0].id)
        make_vector_indexes(connection, large=1000)
        assert VectorIndexes.read(connection, large=1000) == ((), ())
