"""Vectors of OpenClaw's databases, of March and of September 2026, are taken over as they are, and only read."""

from __future__ import annotations

import hashlib
import json
import math
import os
from array import array
from collections.abc import Sequence
from pathlib import Path

import apsw
import pytest

from clawmark.importers.seeds import Seed, SeedsUnreadable, databases_of, seeds

META = json.dumps({"model": "text-embedding-3-small", "provider": "openai", "providerKey": "k1", "sources": ["memory"]})


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def march(path: Path, cached: dict[str, str], chunks: dict[str, str]) -> None:
    """The database of March 2026: vectors as JSON text."""
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
    db.execute("INSERT INTO meta VALUES ('memory_index_meta_v1', ?)", (META,))
    db.execute(
        "CREATE TABLE chunks (id TEXT PRIMARY KEY, path TEXT, source TEXT, start_line INTEGER, end_line INTEGER, "
        "hash TEXT, model TEXT, text TEXT, embedding TEXT, updated_at INTEGER)"
    )
    db.execute(
        "CREATE TABLE embedding_cache (provider TEXT, model TEXT, provider_key TEXT, hash TEXT, embedding TEXT, "
        "dims INTEGER, updated_at INTEGER, PRIMARY KEY (provider, model, provider_key, hash))"
    )
    for text, vector in cached.items():
        row = ("openai", "text-embedding-3-small", "k1", digest(text), vector)
        db.execute("INSERT INTO embedding_cache VALUES (?, ?, ?, ?, ?, 3, 0)", row)
    for number, (text, vector) in enumerate(chunks.items()):
        row = (str(number), digest(text), "text-embedding-3-small", text, vector)
        db.execute("INSERT INTO chunks VALUES (?, 'MEMORY.md', 'memory', 1, 2, ?, ?, ?, ?, 0)", row)
    db.close()


def september(path: Path, cached: dict[str, Sequence[float]]) -> None:
    """The database of September 2026: vectors as float64 blobs."""
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE memory_index_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT")
    db.execute("INSERT INTO memory_index_meta VALUES ('memory_index_meta_v1', ?)", (META,))
    db.execute(
        "CREATE TABLE memory_embedding_cache (provider TEXT, model TEXT, provider_key TEXT, hash TEXT, embedding BLOB, "
        "dims INTEGER, updated_at INTEGER) STRICT"
    )
    for text, vector in cached.items():
        row = ("openai", "text-embedding-3-small", "k1", digest(text), array("d", vector).tobytes())
        db.execute("INSERT INTO memory_embedding_cache VALUES (?, ?, ?, ?, ?, 3, 0)", row)
    db.close()


def numbers(seed: Seed | None) -> list[float]:
    assert seed is not None
    return list(memoryview(seed.vector).cast("f"))


def test_json_vectors_come_from_the_cache_and_the_chunks(tmp_path: Path) -> None:
    march(tmp_path / "main.sqlite", {"a": "[3, 0, 4]"}, {"b": "[0, 2, 0]", "c": "[]"})
    first, second = seeds(str(tmp_path / "main.sqlite"))
    assert numbers(first) == pytest.approx([0.6, 0, 0.8])
    assert numbers(second) == pytest.approx([0, 1, 0])
    assert first is not None
    assert first.identity == ("openai", "text-embedding-3-small", "k1", 3)
    assert first.hash == digest("a")


def test_float64_blobs_come_at_unit_length(tmp_path: Path) -> None:
    september(tmp_path / "a.sqlite", {"a": [1.0, 1.0, 0.0]})
    (seed,) = seeds(str(tmp_path / "a.sqlite"))
    assert numbers(seed) == pytest.approx([math.sqrt(0.5), math.sqrt(0.5), 0])


@pytest.mark.parametrize(
    "vector", ["[0, 0, 0]", "[1, NaN, 2]", "[1, Infinity]", '["1"]', "[true]", "{}", "[1,", "null", "[[1]]"]
)
def test_a_vector_that_is_not_sound_is_left_out(tmp_path: Path, vector: str) -> None:
    march(tmp_path / "main.sqlite", {"a": vector}, {})
    assert list(seeds(str(tmp_path / "main.sqlite"))) == [None]


def test_nothing_is_written_beside_the_database(tmp_path: Path) -> None:
    path = tmp_path / "memory" / "main.sqlite"
    path.parent.mkdir()
    march(path, {"a": "[1]"}, {})
    before = (os.listdir(path.parent), path.read_bytes(), path.stat().st_mtime_ns)
    list(seeds(str(path)))
    assert (os.listdir(path.parent), path.read_bytes(), path.stat().st_mtime_ns) == before


def test_what_a_running_openclaw_has_only_in_its_log_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "memory" / "main.sqlite"
    path.parent.mkdir()
    march(path, {"a": "[1, 2]"}, {})
    db = apsw.Connection(str(path))
    db.execute("PRAGMA journal_mode = WAL")
    row = ("openai", "text-embedding-3-small", "k1", digest("b"), "[3, 4]")
    db.execute("INSERT INTO embedding_cache VALUES (?, ?, ?, ?, ?, 2, 0)", row)
    before = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in path.parent.iterdir()}
    assert before["main.sqlite-wal"][0]
    assert [seed.hash for seed in seeds(str(path)) if seed] == [digest("a"), digest("b")]
    assert {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in path.parent.iterdir()} == before
    db.close()


@pytest.mark.parametrize("data", [b"", b"not a database", b"SQLite format 3\0" + b"\0" * 200])
def test_what_is_no_database_of_openclaw_is_one_sentence(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.sqlite").write_bytes(data)
    with pytest.raises(SeedsUnreadable):
        list(seeds(str(tmp_path / "x.sqlite")))


def test_the_databases_of_an_agent_are_found_newest_kind_first(tmp_path: Path) -> None:
    for place in ("memory/main.sqlite", "agents/main/agent/openclaw-agent.sqlite", "memory/other.sqlite"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).touch()
    found = [os.path.relpath(path, tmp_path) for path in databases_of(str(tmp_path), "main")]
    assert found == ["agents/main/agent/openclaw-agent.sqlite", "memory/main.sqlite"]
