"""`memorySearch.enabled: false` switches off search and its tools, and nothing else."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from commands import Place
from embeddings import EmbeddingServer

from clawmark import AsyncMemory, Memory
from clawmark.hooks.recall import recall_for
from clawmark.model.errors import ConfigError

QUESTION = "when is tea served on this ship?"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.home.mkdir()
    made.write("MEMORY.md", "# Facts\n\nTea is served on this ship at four.\n")
    made.state.mkdir()
    (made.state / "clawmark.json").write_text(
        '{"memorySearch": {"enabled": false}}', encoding="utf-8"
    )
    return made


def opened(place: Place) -> Memory:
    return Memory.open(place.workspace, state_dir=place.state, background=False)


@pytest.mark.parametrize(
    "words",
    [
        ["remember", "Tea moved to five."],
        ["get", "MEMORY.md"],
        ["status"],
        ["sessions"],
        ["prompt"],
        ["doctor"],
        ["index"],
        ["config", "list"],
    ],
    ids=lambda words: words[0],
)
def test_every_other_command_keeps_working(place: Place, words: list[str]) -> None:
    ran = place.run(*words)
    assert ran.code == 0 and "switched off" not in ran.err, ran


def test_a_flush_does_what_it_does_with_search_switched_on(place: Place) -> None:
    off = place.run("flush")
    (place.state / "clawmark.json").write_text("{}", encoding="utf-8")
    assert place.run("flush") == off and "switched off" not in off.err


def test_a_search_says_that_it_is_switched_off_and_where(place: Place) -> None:
    ran = place.run("search", QUESTION)
    assert (ran.code, ran.out) == (2, "")
    assert "Memory search is switched off: memorySearch.enabled is false." in ran.err
    with (
        opened(place) as memory,
        pytest.raises(ConfigError, match=r"memorySearch\.enabled is false"),
    ):
        memory.search(QUESTION)


def test_status_says_that_search_is_switched_off(place: Place) -> None:
    assert "switched off: memorySearch.enabled is false" in place.run("status").out
    assert place.run("status", "--json").json()["searchEnabled"] is False
    assert "Memory search is switched off." in place.run("doctor").out


def test_the_tools_that_search_and_read_are_absent_as_in_openclaw(place: Place) -> None:
    with opened(place) as memory:
        assert [tool.name for tool in memory.tools()] == []
        assert [tool.name for tool in memory.tools(append=True)] == [
            "memory_append",
            "memory_forget",
        ]


def test_the_prompt_has_no_recall_section_and_still_shows_the_files(place: Place) -> None:
    with opened(place) as memory:
        prompt = memory.prompt(append=True)
    assert [section.name for section in prompt.sections] == [
        "memory writing",
        "project context",
        "runtime",
    ]
    assert "Memory Recall" not in prompt.text and "at four" in prompt.text


def test_nothing_is_recalled_and_nothing_is_read_for_it(place: Place) -> None:
    with opened(place) as memory:
        assert memory.recall(QUESTION) == ""
        assert memory.session_started("agent:main:main") is False
    assert recall_for(lambda provider: opened(place), QUESTION, "") == ""
    assert not (place.state / "memory").exists()


def test_nothing_is_sent_to_the_provider(place: Place) -> None:
    with EmbeddingServer() as server:
        remote = {"baseUrl": server.url, "apiKey": "not-a-real-key"}
        tree = {"memorySearch": {"enabled": False, "provider": "openai", "remote": remote}}
        (place.state / "clawmark.json").write_text(json.dumps(tree), encoding="utf-8")
        assert place.run("index").code == 0
        assert server.requests == []


def test_a_note_can_be_written_and_found_once_search_is_on_again(place: Place) -> None:
    with opened(place) as memory:
        memory.append("The tea kettle is on the aft deck.")
    (place.state / "clawmark.json").write_text(
        '{"memorySearch": {"provider": "none"}}', encoding="utf-8"
    )
    assert "aft deck" in place.run("search", "tea kettle").out


def test_an_async_memory_opens_and_reads(place: Place) -> None:
    async def run() -> str:
        async with AsyncMemory.open(place.workspace, state_dir=place.state) as memory:
            return (await memory.read("MEMORY.md")).text

    assert "at four" in asyncio.run(run())
