"""`clawmark migrate` moves an index between SQLite and PostgreSQL, compares it row by row, and pays
for no embedding again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from commands import Place, new_place, says_one_clear_thing
from embeddings import EmbeddingServer

from clawmark.engine.moving.comparing import compare
from clawmark.engine.moving.run import move, plan_move
from clawmark.engine.sync.publish import words_for
from clawmark.store.base import IndexStore, ManagedStore
from clawmark.store.postgres.store import PostgresStore
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing.vectors import file_of, identity_of, random_vectors

SECRET = "hunter2sesame"
QUESTIONS = ("which database?", "router cable", "数据库", "otter 33", "part 17")


def quiet(what: str, done: int, total: int) -> None:
    """Show no progress."""


@pytest.fixture
def service() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(dims=1536) as running:
        yield running


@pytest.fixture
def place(tmp_path: Path, service: EmbeddingServer) -> Place:
    """A workspace with a large file, other scripts and an empty file, and its settings."""
    made = new_place(tmp_path)
    parts = "\n\n".join(f"## Part {n}\n\n" + f"heron plan {n} lake " * 60 for n in range(330))
    made.write("memory/large.md", parts)
    made.write("memory/zh.md", "# 数据库\n\n数据库迁移已经完成，上海机房。\n")
    made.write("memory/empty.md", "")
    for number in range(60):
        made.write(f"memory/note-{number}.md", f"# Note {number}\n\nThe otter sleeps, {number}.\n")
    settings = {
        "provider": "openai",
        "remote": {"baseUrl": service.url, "apiKey": "not-a-real-key"},
    }
    write_config(made, settings)
    return made


def write_config(place: Place, search: dict[str, Any]) -> None:
    place.state.mkdir(exist_ok=True)
    (place.state / "clawmark.json").write_text(json.dumps({"memorySearch": search}))


def config_of(place: Place) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((place.state / "clawmark.json").read_text())["memorySearch"]
    return found


def answers(place: Place, env: dict[str, str]) -> list[list[dict[str, Any]]]:
    found = []
    for question in QUESTIONS:
        ran = place.run("search", question, "--json", "--min-score", "0", env=env)
        assert ran.code == 0, ran.err
        hits = ran.json()["results"]
        found.append([{**hit, "score": round(hit["score"], 5)} for hit in hits])
    return found


def test_an_index_moves_there_and_back_without_an_embedding(
    place: Place, service: EmbeddingServer, postgres_uri: str
) -> None:
    env = {"DATABASE": postgres_uri}
    assert place.run("index").code == 0
    before = answers(place, env)
    assert sum(map(len, before)) > 10
    texts = len(service.tally.log)
    plan = place.run("migrate", "--to", "${DATABASE}", "--dry-run", "--json", env=env).json()
    assert plan["copy"] == plan["files"] == 65

    moved = place.run("migrate", "--to", "${DATABASE}", "--json", env=env)
    assert moved.code == 0, moved.out + moved.err
    compared = moved.json()["compared"]
    assert compared["differences"] == []
    assert compared["files"] == 65
    assert compared["vectors"] == 2 * compared["chunks"] - 1, "static vectors know no Chinese"

    write_config(place, {**config_of(place), "store": {"uri": "${DATABASE}"}})
    again = place.run("index", "--json", env=env).json()
    assert (again["added"], again["updated"], again["embedded"]) == (0, 0, 0)
    assert answers(place, env) == before
    back = place.folder / "back.sqlite"
    ran = place.run("migrate", "--to", str(back), "--json", env=env)
    assert ran.code == 0, ran.out + ran.err
    assert ran.json()["compared"] == compared
    write_config(place, {**config_of(place), "store": {"path": str(back)}})
    again = place.run("index", "--json").json()
    assert (again["added"], again["updated"], again["embedded"]) == (0, 0, 0)
    assert answers(place, env) == before
    asked = service.tally.log[texts:]
    assert {text for record in asked for text in record.texts} <= set(QUESTIONS)
    assert place.run("verify").code == 0


def test_the_old_index_and_the_settings_stay(place: Place, postgres_uri: str) -> None:
    env = {"DATABASE": postgres_uri}
    write_config(place, {"provider": "none"})
    assert place.run("index").code == 0
    settings = (place.state / "clawmark.json").read_text()
    ran = place.run("migrate", "--to", "${DATABASE}", env=env)
    assert ran.code == 0, ran.err
    assert "all the same" in ran.out
    assert "clawmark config set memorySearch.store.uri '${DATABASE}'" in ran.err
    assert (place.state / "clawmark.json").read_text() == settings
    status = place.run("status", "--json", env=env).json()
    assert "sqlite" in json.dumps(status)
    assert place.run("search", "heron", env={"DATABASE": "postgresql://127.0.0.1:1/x"}).code == 0


def test_an_index_that_is_there_is_replaced_only_if_asked(place: Place, postgres_uri: str) -> None:
    env = {"DATABASE": postgres_uri}
    write_config(place, {"provider": "none"})
    assert place.run("index").code == 0
    assert place.run("migrate", "--to", "${DATABASE}", env=env).code == 0
    place.write("memory/new.md", "# New\n\nThe kestrel.\n")
    (place.workspace / "memory" / "zh.md").unlink()
    assert place.run("index").code == 0
    refused = place.run("migrate", "--to", "${DATABASE}", env=env)
    assert refused.code == 2
    assert says_one_clear_thing(refused)
    assert "--replace" in refused.err
    ran = place.run("migrate", "--to", "${DATABASE}", "--replace", "--json", env=env).json()
    assert (ran["copiedFiles"], ran["deletedFiles"]) == (1, 1)
    assert ran["compared"]["differences"] == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "--to or --from is missing"),
        (("--to", "sqlite"), 2, "already"),
        (("--to", f"postgresql://ada:{SECRET}@127.0.0.1:1/m"), 3, "cannot be reached"),
        (("--to", f"mysql://ada:{SECRET}@127.0.0.1/m"), 2, "PostgreSQL or to an SQLite file"),
        (("--to", "${NOT_SET}"), 2, "NOT_SET"),
        (("--to", "MEMORY.md"), 2, "is not an index"),
        (("--from", "elsewhere.sqlite"), 2, "has no index to move"),
    ],
)
def test_a_move_that_is_not_possible_says_why(
    words: tuple[str, ...], code: int, said: str, tmp_path: Path
) -> None:
    place = new_place(tmp_path)
    ran = place.run("migrate", *words, cwd=place.workspace)
    assert ran.code == code, ran.err
    assert says_one_clear_thing(ran), ran.err
    assert said in ran.err
    assert SECRET not in ran.out + ran.err


# --- the comparison ---


@pytest.fixture
def pair(tmp_path: Path, postgres_index: PostgresStore) -> Iterator[tuple[ManagedStore, Any]]:
    """An index in SQLite, and its copy in PostgreSQL."""
    with closing(SqliteStore(str(tmp_path / "index.sqlite"))) as source:
        store(source, "a.md", *(f"passage {number} about the lake" for number in range(21)))
        with source.transaction() as transaction:
            space = transaction.add_space(identity_of(16)).id
            rows = transaction.due_chunks(space, transaction.due_keys(space))
            vectors = [*random_vectors(20, 16, seed=1), None]
            transaction.put_vectors(
                space,
                [(row.key, row.hash, one) for row, one in zip(rows, vectors, strict=True)],
            )
            transaction.set_ready(space)
        store(source, "b.md", "heron plan", "otter lake heron")
        with source.transaction() as transaction:
            transaction.set_facts("identity", {"model": "m"})
            transaction.cache_vectors(
                identity_of(8, "other"), {"ab" * 32: random_vectors(1, 8, seed=2)[0]}
            )
        yield source, postgres_index


def store(index: IndexStore, path: str, *texts: str) -> None:
    """Store a file as a sync does, with one chunk for each text."""
    row, chunks, _ = file_of(path, *texts)
    with index.transaction() as transaction:
        transaction.put_file(row, chunks, words_for(row, chunks))


def test_what_is_due_in_the_source_is_due_in_the_target(pair: tuple[ManagedStore, Any]) -> None:
    source, target = pair
    report = move(source, target, quiet)
    assert report.differences == ()
    with source.snapshot() as left, target.snapshot() as right:
        for snapshot in (left, right):
            (space,) = snapshot.spaces()
            assert (space.vectors, snapshot.count_due(space.id)) == (20, 2)
    assert report.compared.vectors == 20
    assert report.compared.cached == 21


TAMPERING = {
    "a chunk": "UPDATE clawmark.chunks SET text = 'x' WHERE key = 3",
    "a heading": "UPDATE clawmark.chunks SET heading = 'x' WHERE key = 3",
    "a line number": "UPDATE clawmark.chunks SET end_line = 77 WHERE key = 3",
    "a file": "UPDATE clawmark.files SET mtime_ns = mtime_ns + 1 WHERE path = 'b.md'",
    "a missing file": "DELETE FROM clawmark.files WHERE path = 'b.md'",
    "a frequency": "UPDATE clawmark.words SET stated[1] = stated[1] + 1 WHERE key = 3",
    "a position": "UPDATE clawmark.words SET sequence = sequence || sequence WHERE key = 3",
    "a length": "UPDATE clawmark.words SET length = length + 1 WHERE key = 3",
    "a count": "UPDATE clawmark.terms SET chunks = chunks + 1 "
    "WHERE term = (SELECT min(term) FROM clawmark.terms)",
    "missing words": "DELETE FROM clawmark.words WHERE key = 3",
    "a vector": "UPDATE clawmark.cache SET embedding = set_byte(embedding, 0, 9) "
    "WHERE hash = (SELECT hash FROM clawmark.chunks WHERE key = 3)",
    "a missing vector": "DELETE FROM clawmark.vectors WHERE key = 3",
    "a cached vector": "DELETE FROM clawmark.cache WHERE model = 'other'",
    "a vector space": "UPDATE clawmark.spaces SET ready = NOT ready",
    "a fact": "DELETE FROM clawmark.facts WHERE name = 'identity'",
}


@pytest.mark.parametrize("what", TAMPERING)
def test_the_comparison_finds(what: str, pair: tuple[ManagedStore, Any], postgres_uri: str) -> None:
    source, target = pair
    move(source, target, quiet)
    with psycopg.connect(postgres_uri) as connection:
        assert connection.execute(TAMPERING[what]).rowcount >= 1
    assert compare(source, target, quiet).differences


@pytest.mark.parametrize("what", ["a chunk", "a file", "a cached vector", "a fact"])
def test_moving_again_repairs(what: str, pair: tuple[ManagedStore, Any], postgres_uri: str) -> None:
    source, target = pair
    move(source, target, quiet)
    with psycopg.connect(postgres_uri) as connection:
        connection.execute(TAMPERING[what])
    assert move(source, target, quiet).differences == ()


def test_changes_during_the_move_are_moved_too(pair: tuple[ManagedStore, Any]) -> None:
    source, target = pair
    changes: list[Callable[[], object]] = [
        lambda: store(source, "c.md", "kestrel"),
        lambda: store(source, "b.md", "changed"),
    ]

    def change(what: str, done: int, total: int) -> None:
        if what == "vectors" and changes:
            changes.pop()()

    report = move(source, target, change)
    assert report.passes > 1
    assert report.differences == ()
    with target.snapshot() as snapshot:
        assert sorted(snapshot.files()) == ["a.md", "b.md", "c.md"]
        assert [chunk.text for chunk in snapshot.chunks_of("b.md")] == ["changed"]
    assert plan_move(source, target).copy == 0
