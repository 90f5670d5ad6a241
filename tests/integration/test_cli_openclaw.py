"""The commands of `openclaw memory` run as `clawmark memory`, with the flags that scripts give
them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Place, new_place
from embeddings import EmbeddingServer


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new_place(tmp_path)


def test_the_memory_commands_equal_the_verbs_of_the_same_name(place: Place) -> None:
    assert place.run("memory", "index", "--force", "--verbose").code == 0
    found = place.run(
        "memory",
        "search",
        "--query",
        "PostgreSQL",
        "--max-results",
        "1",
        "--min-score",
        "0.1",
        "--json",
    )
    plain = place.run("search", "PostgreSQL", "--max-results", "1", "--min-score", "0.1", "--json")
    assert found.json()["results"] == plain.json()["results"] != []
    assert {
        "path",
        "startLine",
        "endLine",
        "score",
        "vectorScore",
        "textScore",
        "snippet",
        "source",
    } <= set(found.json()["results"][0])
    assert "Workspace" in place.run("memory", "status").out


def test_flags_work_before_and_after_the_memory_command(place: Place) -> None:
    for words in (
        ("--json", "memory", "search", "PostgreSQL"),
        ("memory", "--json", "search", "PostgreSQL"),
        ("memory", "search", "PostgreSQL", "--json"),
        ("memory", "search", "PostgreSQL", "--agent", "main", "--json"),
    ):
        assert place.run(*words).json()["results"], words


def test_memory_status_as_json_has_the_shape_of_openclaw(place: Place) -> None:
    place.run("index")
    (entry,) = place.run("memory", "status", "--json").json()
    assert entry["agentId"] == "main"
    status = entry["status"]
    assert (status["files"], status["dirty"], status["workspaceDir"]) == (
        2,
        False,
        str(place.workspace),
    )
    assert (
        status["chunks"] > 0
        and status["backend"] == "builtin"
        and status["custom"]["searchMode"] == "hybrid"
    )
    assert "embeddingProbe" not in entry


def test_an_unsupported_memory_command_is_refused(place: Place) -> None:
    ran = place.run("memory", "promote", "--apply")
    assert (ran.code, ran.out) == (2, "")
    assert "There is no command `clawmark memory promote`; use status, index or search." in ran.err


def test_status_index_brings_the_index_up_to_date_first(place: Place) -> None:
    assert place.run("status", "--json").json()["dueFiles"] == 2
    ran = place.run("status", "--index", "--json").json()
    assert (ran["dueFiles"], ran["embeddingProbe"]) == (0, {"ok": True})


def test_only_status_deep_probes_the_embedder(place: Place) -> None:
    with EmbeddingServer(key="sk-right") as server:
        search = {"provider": "openai", "remote": {"baseUrl": server.url, "apiKey": "sk-right"}}
        place.state.mkdir(mode=0o700)
        (place.state / "clawmark.json").write_text(
            json.dumps({"memorySearch": search}), encoding="utf-8"
        )
        place.run("status")
        assert not server.tally.log
        assert place.run("status", "--deep", "--json").json()["embeddingProbe"] == {"ok": True}
        assert "Embeddings   ready" in place.run("status", "--deep").out
        server.key = "sk-other"
        (entry,) = place.run("memory", "status", "--deep", "--json").json()
        assert entry["embeddingProbe"]["ok"] is False and entry["embeddingProbe"]["error"]


def test_status_fix_repairs_what_doctor_repairs(place: Place) -> None:
    place.run("index")
    (index,) = place.state.rglob("*.sqlite")
    index.write_bytes(b"not a database " * 1000)
    ran = place.run("status", "--fix", "--json")
    assert (ran.code, ran.json()["files"], ran.json()["dueFiles"]) == (0, 2, 0)


def test_the_query_flag_replaces_the_positional_query(place: Place) -> None:
    found = place.run("search", "nothing", "like", "this", "--query", "PostgreSQL", "--json").json()
    assert found["results"]
    assert place.run("search", "--query", "").code == place.run("search", "").code
