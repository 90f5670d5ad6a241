"""A server whose vectors have another size than the model it is asked for: said clearly, asked
twice, then left alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Place, new_place
from embeddings import EmbeddingServer

MODEL = "text-embedding-3-small"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(dims=384) as server:
        yield server


@pytest.fixture
def place(tmp_path: Path, server: EmbeddingServer) -> Place:
    place = new_place(tmp_path)
    configure(place, server)
    return place


def configure(place: Place, server: EmbeddingServer, **more: Any) -> None:
    search = {
        "provider": "openai",
        "model": MODEL,
        "remote": {"baseUrl": server.url, "apiKey": "sk-test-1"},
        **more,
    }
    place.state.mkdir(mode=0o700, exist_ok=True)
    (place.state / "clawmark.json").write_text(
        json.dumps({"memorySearch": search}), encoding="utf-8"
    )


def requests(server: EmbeddingServer) -> int:
    return len(server.tally.log)


def test_a_size_that_the_model_does_not_have_is_paid_for_once_and_then_only_reported(
    place: Place, server: EmbeddingServer
) -> None:
    first = place.run("index")
    assert first.code == 2
    assert "384 numbers" in first.err and "1536" in first.err
    assert "memorySearch.outputDimensionality to 384" in first.err
    paid = requests(server)
    assert [record.texts for record in server.tally.log[1:]] == [("size",)], (
        "one short text makes sure"
    )
    again = place.run("index")
    assert (again.code, requests(server)) == (2, paid)
    assert "memorySearch.outputDimensionality to 384" in again.err
    found = place.run("search", "PostgreSQL", "--json").json()
    assert found["results"] and "384" in found["degraded"]["reason"]
    assert requests(server) == paid
    assert "outputDimensionality" in place.run("doctor").out


def test_json_says_that_the_settings_have_to_change(place: Place) -> None:
    ran = place.run("index", "--json")
    assert ran.code == 2
    assert ran.json()["degraded"]["needsChange"] is True


def test_the_advice_in_the_message_repairs_it(place: Place, server: EmbeddingServer) -> None:
    assert place.run("index").code == 2
    configure(place, server, outputDimensionality=384)
    done = place.run("index", "--json")
    assert (done.code, done.json()["dueVectors"]) == (0, 0)


def test_a_repaired_server_is_asked_again_with_force(place: Place, server: EmbeddingServer) -> None:
    assert place.run("index").code == 2
    server.dims = 1536
    assert place.run("index").code == 2
    done = place.run("index", "--force", "--json")
    assert (done.code, done.json()["dueVectors"]) == (0, 0)
    assert place.run("index").code == 0


def test_one_wrong_answer_of_a_service_that_is_right_otherwise_is_forgotten(
    place: Place, server: EmbeddingServer
) -> None:
    server.dims = 1536
    assert place.run("index").code == 0
    place.write("memory/2026-11-02.md", "The new office has a blue door.\n")
    server.script(["half-dims"])
    assert place.run("index").code == 0
    done = place.run("index", "--json")
    assert (done.code, done.json()["dueVectors"]) == (0, 0)
