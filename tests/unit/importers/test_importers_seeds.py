"""Vectors of OpenClaw's databases, of March and of September 2026, are taken over as they are, and
only read.
"""

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

from clawmark.importers.seeds import (
    Seed,
    SeedsUnreadable,
    databases_of,
    open_index,
    openclaw_folder,
)

META = json.dumps(
    {
        "model": "text-embedding-3-small",
        "provider": "openai",
        "providerKey": "k1",
        "sources": ["memory"],
    }
)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def march(path: Path, cached: dict[str, str], chunks: dict[str, str]) -> None:
    """The database of March 2026: vectors as JSON text."""
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
    db.execute("INSERT INTO meta VALUES ('memory_index_meta_v1', ?)", (META,))
    db.execute(
        "CREATE TABLE chunks (id TEXT PRIMARY KEY, path TEXT, source TEXT, start_line INTEGER, "
        "end_line INTEGER, "
        "hash TEXT, model TEXT, text TEXT, embedding TEXT, updated_at INTEGER)"
    )
    db.execute(
        "CREATE TABLE embedding_cache (provider TEXT, model TEXT, provider_key TEXT, hash TEXT, "
        "embedding TEXT, "
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
        "CREATE TABLE memory_embedding_cache (provider TEXT, model TEXT, provider_key TEXT, hash "
        "TEXT, embedding BLOB, "
        "dims INTEGER, updated_at INTEGER) STRICT"
    )
    for text, vector in cached.items():
        row = ("openai", "text-embedding-3-small", "k1", digest(text), array("d", vector).tobytes())
        db.execute("INSERT INTO memory_embedding_cache VALUES (?, ?, ?, ?, ?, 3, 0)", row)
    db.close()


def seeds(path: str) -> list[Seed | None]:
    with open_index(path) as index:
        return list(index.seeds())


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


def test_vector_in_cache_and_chunk_is_counted_once(
    tmp_path: Path,
) -> None:
    march(
        tmp_path / "main.sqlite",
        {"a": "[3, 4]", "b": "[0]"},
        {"a": "[3, 4]", "b": "[0]", "c": "[1]"},
    )
    found = seeds(str(tmp_path / "main.sqlite"))
    assert [seed.hash for seed in found if seed] == [digest("a"), digest("c")]
    assert found.count(None) == 1


def test_a_damaged_copy_in_the_cache_does_not_hide_a_sound_one(tmp_path: Path) -> None:
    march(tmp_path / "main.sqlite", {"a": "[0]"}, {"a": "[3, 4]"})
    (seed,) = seeds(str(tmp_path / "main.sqlite"))
    assert numbers(seed) == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize(
    ("version", "mode"), [("", "lines"), (', "chunkingVersion": 5', "lines-v5")]
)
def test_the_way_text_was_cut_is_read_from_the_database(
    tmp_path: Path, version: str, mode: str
) -> None:
    september(tmp_path / "a.sqlite", {"a": [1.0]})
    db = apsw.Connection(str(tmp_path / "a.sqlite"))
    db.execute("UPDATE memory_index_meta SET value = ?", (META[:-1] + version + "}",))
    db.close()
    with open_index(str(tmp_path / "a.sqlite")) as index:
        assert index.chunking_mode == mode


@pytest.mark.parametrize(
    "vector",
    ["[0, 0, 0]", "[1, NaN, 2]", "[1, Infinity]", '["1"]', "[true]", "{}", "[1,", "null", "[[1]]"],
)
def test_a_vector_that_is_not_sound_is_left_out(tmp_path: Path, vector: str) -> None:
    march(tmp_path / "main.sqlite", {"a": vector}, {})
    assert seeds(str(tmp_path / "main.sqlite")) == [None]


def test_no_file_is_created_next_to_the_database(tmp_path: Path) -> None:
    path = tmp_path / "memory" / "main.sqlite"
    path.parent.mkdir()
    march(path, {"a": "[1]"}, {})
    before = (os.listdir(path.parent), path.read_bytes(), path.stat().st_mtime_ns)
    seeds(str(path))
    assert (os.listdir(path.parent), path.read_bytes(), path.stat().st_mtime_ns) == before


def test_what_a_running_openclaw_has_only_in_its_log_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "memory" / "main.sqlite"
    path.parent.mkdir()
    march(path, {"a": "[1, 2]"}, {})
    db = apsw.Connection(str(path))
    db.execute("PRAGMA journal_mode = WAL")
    row = ("openai", "text-embedding-3-small", "k1", digest("b"), "[3, 4]")
    db.execute("INSERT INTO embedding_cache VALUES (?, ?, ?, ?, ?, 2, 0)", row)
    before = {
        file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in path.parent.iterdir()
    }
    assert before["main.sqlite-wal"][0]
    assert [seed.hash for seed in seeds(str(path)) if seed] == [digest("a"), digest("b")]
    assert {
        file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in path.parent.iterdir()
    } == before
    db.close()


@pytest.mark.parametrize("data", [b"", b"not a database", b"SQLite format 3\0" + b"\0" * 200])
def test_other_database_is_a_clear_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.sqlite").write_bytes(data)
    with pytest.raises(SeedsUnreadable):
        seeds(str(tmp_path / "x.sqlite"))


def test_the_databases_of_an_agent_are_found_newest_kind_first(tmp_path: Path) -> None:
    for place in (
        "memory/main.sqlite",
        "agents/main/agent/openclaw-agent.sqlite",
        "memory/other.sqlite",
    ):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).touch()
    found = [os.path.relpath(path, tmp_path) for path in databases_of(str(tmp_path), "main")]
    assert found == ["agents/main/agent/openclaw-agent.sqlite", "memory/main.sqlite"]


def test_a_database_that_the_configuration_puts_elsewhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "main.db").touch()
    text = json.dumps(
        {"agents": {"defaults": {"memorySearch": {"store": {"path": "elsewhere/{agentId}.db"}}}}}
    )
    (tmp_path / "openclaw.json").write_text(text, encoding="utf-8")
    assert databases_of(str(tmp_path), "main") == [str(tmp_path / "elsewhere" / "main.db")]


def test_the_openclaw_around_our_state_folder_is_imported_from(tmp_path: Path) -> None:
    (tmp_path / "openclaw.json").write_text("{}", encoding="utf-8")
    assert openclaw_folder(str(tmp_path / "clawmark"), "main", {}) == str(tmp_path)


def test_a_state_folder_with_a_database_of_openclaw_is_imported_from_without_a_configuration(
    tmp_path: Path,
) -> None:
    (tmp_path / "state" / "memory").mkdir(parents=True)
    (tmp_path / "state" / "memory" / "main.sqlite").touch()
    assert openclaw_folder(str(tmp_path / "state"), "main", {}) == str(tmp_path / "state")


def test_without_an_openclaw_nearby_the_usual_folder_is_imported_from(tmp_path: Path) -> None:
    ours = str(tmp_path / "state")
    assert openclaw_folder(ours, "main", {"OPENCLAW_STATE_DIR": "/srv/openclaw"}) == "/srv/openclaw"
    assert openclaw_folder(ours, "main", {}) == os.path.expanduser("~/.openclaw")
