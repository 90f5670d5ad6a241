"""Probes: the provider is really asked and the vector engine really scores; without them nothing is
said to work.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Place
from embeddings import EmbeddingServer

from clawmark import AsyncMemory, Memory
from clawmark.model.reports import Probe

KEY = "sk-FAKE-0123456789"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.home.mkdir()
    made.write("MEMORY.md", "# Facts\n\nTea is at four.\n")
    return made


def configure(place: Place, **search: object) -> None:
    place.state.mkdir(exist_ok=True)
    (place.state / "clawmark.json").write_text(
        json.dumps({"memorySearch": search}), encoding="utf-8"
    )


def closed_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
    return port


def remote(port: int) -> dict[str, object]:
    return {
        "provider": "openai",
        "remote": {"baseUrl": f"http://127.0.0.1:{port}/v1", "apiKey": KEY},
    }


def probes(place: Place, **overrides: object) -> tuple[Probe, ...]:
    settings = {name.replace("__", "."): value for name, value in overrides.items()}
    with Memory.open(
        place.workspace, state_dir=place.state, overrides=settings, background=False
    ) as memory:
        return memory.probe()


def test_doctor_does_not_say_that_a_provider_on_a_closed_port_is_ok(place: Place) -> None:
    configure(place, **remote(closed_port()))
    ran = place.run("doctor")
    assert ran.code == 0, ran
    (line,) = [line for line in ran.out.splitlines() if "Embedder:" in line]
    assert (
        line.startswith("note")
        and "text-embedding-3-small (openai) is configured" in line
        and "it was not called" in line
    )
    assert "doctor --probe" in ran.out


def test_doctor_with_probe_fails_for_a_provider_on_a_closed_port(place: Place) -> None:
    configure(place, **remote(closed_port()))
    ran = place.run("doctor", "--probe")
    assert ran.code == 1
    (line,) = [line for line in ran.out.splitlines() if "Embeddings:" in line]
    assert line.startswith("problem") and "text-embedding-3-small (openai) does not work" in line
    assert KEY not in ran.out + ran.err and "FAKE" not in ran.out + ran.err
    findings = place.run("doctor", "--probe", "--json").json()["findings"]
    failed = [finding for finding in findings if finding["what"].startswith("Embeddings: ")]
    assert [(finding["level"], bool(finding["nextStep"])) for finding in failed] == [
        ("problem", True)
    ]


def test_doctor_with_probe_says_what_a_working_provider_made(place: Place) -> None:
    with EmbeddingServer(dims=1536, key=KEY) as server:
        configure(place, **remote(server.port))
        ran = place.run("doctor", "--probe")
        assert ran.code == 0, ran
        assert (
            "Embeddings: text-embedding-3-small (openai) made a vector of 1536 numbers in "
            in ran.out
        )
        assert "Vectors: blocks scored two known vectors in " in ran.out
        assert [json.loads(request.body)["input"] for request in server.requests] == [["ping"]]


def test_a_key_that_is_refused_is_the_reason_and_is_not_repeated(place: Place) -> None:
    with EmbeddingServer(key="another-key") as server:
        configure(place, **remote(server.port))
        embeddings, vectors = probes(place)
    assert (embeddings.state, vectors.state) == ("failed", "ok")
    assert "401" in embeddings.reason or "key" in embeddings.reason.lower()
    assert embeddings.next_step and KEY not in str(embeddings)


def test_a_probe_asks_a_provider_that_failed_a_moment_ago(place: Place) -> None:
    with EmbeddingServer() as server:
        configure(place, **remote(server.port))
        server.script([500] * 9)
        assert probes(place)[0].state == "failed"
        server.heal()
        assert probes(place)[0].state == "ok"


def test_a_missing_key_is_a_failed_probe(place: Place) -> None:
    configure(place, provider="openai")
    ran = place.run("doctor", "--probe", env={"OPENAI_API_KEY": None})
    assert ran.code == 1 and "No API key found for provider openai" in ran.out


def test_a_model_in_the_process_is_probed_too(place: Place) -> None:
    embeddings, vectors = probes(place, memorySearch__provider="static")
    assert (embeddings.state, embeddings.dims) == ("ok", 256)
    assert (vectors.state, vectors.name) == ("ok", "blocks")


def test_what_is_switched_off_is_not_a_failure(place: Place) -> None:
    configure(place, provider="none", store={"vector": {"enabled": False}})
    assert [(probe.part, probe.state) for probe in probes(place)] == [
        ("embeddings", "off"),
        ("vectors", "off"),
    ]
    assert place.run("doctor", "--probe").code == 0


def test_sqlite_vec_is_loaded_where_it_is_selected(place: Place) -> None:
    pytest.importorskip("sqlite_vec")
    settings = {
        "memorySearch__store__vector__engine": "sqlite-vec",
        "memorySearch__provider": "static",
    }
    assert [(probe.state, probe.name) for probe in probes(place, **settings)][1] == (
        "ok",
        "sqlite-vec",
    )


def test_sqlite_vec_that_is_not_installed_is_a_failed_probe_with_the_command_to_install_it(
    place: Place,
) -> None:
    code = (
        "import sys, importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'sqlite_vec' else find(name, *more)\n"
        "from clawmark.cli import main; sys.exit(main(['doctor', '--probe']))"
    )
    configure(place, provider="static", store={"vector": {"engine": "sqlite-vec"}})
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=place.environment(),
        check=False,
    )
    assert ran.returncode == 1
    assert (
        "Vectors: sqlite-vec does not work" in ran.stdout
        and "pip install 'clawmark[sqlite-vec]'" in ran.stdout
    )


def test_an_async_memory_probes_as_well(place: Place) -> None:
    async def run() -> tuple[Probe, ...]:
        async with AsyncMemory.open(
            place.workspace, state_dir=place.state, provider="static"
        ) as memory:
            return await memory.probe()

    assert [probe.state for probe in asyncio.run(run())] == ["ok", "ok"]
