"""`status --json` tells the numbers an operator asks for, those of the last sync whichever process
made it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Place, new_place
from embeddings import EmbeddingServer

from clawmark import Memory, PathDenied
from clawmark.embed.local.weights import has_numpy
from clawmark.testing import HashingEmbedder


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = new_place(tmp_path)
    made.write("../state/clawmark.json", '{ memorySearch: { provider: "static" } }')
    return made


def test_the_numbers_of_the_last_sync_are_visible_to_another_process(place: Place) -> None:
    assert place.run("index").code == 0
    place.write("memory/new.md", "The osprey is new.")
    place.write("memory/bad.md", "").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
    status = place.run("status", "--json").json()
    metrics = status["metrics"]
    assert metrics["sync.last.added"] == 2 and metrics["sync.last.embedded"] == 2
    assert (metrics["dirty.memory"], status["dueBySource"]) == (2, {"memory": 2})
    assert status["lastSync"]["reason"] == "manual"
    assert {
        "paths.denied",
        "lock.waits",
        "searches",
        "syncs",
        "read.errors",
        "cache.hitRate",
        "provider.fallback",
    } <= set(metrics)
    place.run("index")
    metrics = place.run("status", "--json").json()["metrics"]
    assert (metrics["dirty.memory"], metrics["read.errors"], metrics["dirty.vectors"]) == (0, 1, 0)


def test_a_sync_that_only_failed_is_reported_too(place: Place) -> None:
    assert place.run("index").code == 0
    place.write("memory/bad.md", "").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
    place.run("index")
    assert place.run("status", "--json").json()["metrics"]["read.errors"] == 1
    assert "1 could not be indexed" in place.run("status").out


def test_text_that_comes_back_is_a_hit_of_the_cache(place: Place) -> None:
    place.run("index")
    place.workspace.joinpath("memory", "2026-11-15.md").rename(
        place.workspace / "memory" / "tea.md"
    )
    place.run("index")
    assert place.run("status", "--json").json()["metrics"]["cache.hitRate"] == 1.0


@pytest.mark.skipif(not has_numpy(), reason="numpy is not installed")
def test_a_fallback_is_reported(tmp_path: Path) -> None:
    (tmp_path / "agent" / "memory").mkdir(parents=True)
    (tmp_path / "agent" / "MEMORY.md").write_text("The heron nests by the pier.")
    with EmbeddingServer() as server:
        server.spoil(401)
        settings = {
            "memorySearch.provider": "openai",
            "memorySearch.remote.baseUrl": server.url,
            "memorySearch.remote.apiKey": "not-a-real-key",
            "memorySearch.fallback": ["local"],
        }
        with Memory.open(
            tmp_path / "agent", state_dir=tmp_path / "state", overrides=settings
        ) as memory:
            memory.sync()
            status = memory.status()
            assert status.metrics["provider.fallback"] == 1 and "local" in str(
                status.last_sync["standIn"]
            )
            assert "key was refused" in str(status.last_sync["degraded"])


def test_this_process_counts_its_searches_syncs_and_denied_paths(tmp_path: Path) -> None:
    (tmp_path / "agent" / "memory").mkdir(parents=True)
    (tmp_path / "agent" / "MEMORY.md").write_text("The heron nests by the pier.")
    with Memory.open(
        tmp_path / "agent", state_dir=tmp_path / "state", embedder=HashingEmbedder()
    ) as memory:
        memory.sync()
        memory.search("heron")
        with pytest.raises(PathDenied):
            memory.read("../../etc/passwd")
        metrics = memory.status().metrics
        assert (metrics["syncs"], metrics["searches"], metrics["paths.denied"]) == (1, 1, 1)
        assert memory.metrics.snapshot() == metrics
