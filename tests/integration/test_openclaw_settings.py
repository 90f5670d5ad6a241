"""Configurations that OpenClaw accepts: none stops a command, and its providers and lists of tools
are used.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Place
from embeddings import EmbeddingServer

from clawmark import Memory

KEY = "not-a-real-key"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.home.mkdir()
    made.state.mkdir()
    made.write("MEMORY.md", "The heron nests by the pier.\n")
    return made


@pytest.mark.parametrize(
    "tree",
    [
        {"session": {"reset": {"mode": "none"}}},
        {"memory": {"backend": "qmd", "qmd": {"limits": {"timeoutMs": 0}}}},
        {"memorySearch": {"query": {"maxResults": 20_000}}},
        {"memorySearch": {"chunking": {"tokens": 200_000}}},
        {"memorySearch": {"provider": "github-copilot"}},
        {
            "models": {"providers": {"Mine.2": {"api": "anthropic-messages"}}},
            "memorySearch": {"provider": "Mine.2"},
        },
        {
            "models": {"providers": {"mine": {"models": []}}},
            "memorySearch": {"provider": "mine", "fallback": "mine"},
        },
    ],
    ids=str,
)
def test_a_configuration_that_openclaw_accepts_stops_no_command(
    place: Place, tree: dict[str, object]
) -> None:
    (place.state / "clawmark.json").write_text(json.dumps(tree), encoding="utf-8")
    for words in (["remember", "The heron is back."], ["search", "heron"], ["status"]):
        ran = place.run(*words)
        assert ran.code == 0, ran
    assert "heron" in place.run("search", "heron").out
    is_said = any(word in ran.out for word in ("Warnings", "Degraded", "instead of qmd"))
    assert is_said == ("session" not in tree)


def test_a_provider_of_the_users_own_is_asked_at_its_address_with_its_key(place: Place) -> None:
    with EmbeddingServer(dims=64, key=KEY) as server:
        mine = {
            "baseUrl": server.url,
            "apiKey": "${MY_KEY}",
            "api": "openai-completions",
            "models": [],
        }
        search = {"provider": "mine", "model": "mine/nomic-embed"}
        tree = {"models": {"providers": {"mine": mine}}, "memorySearch": search}
        (place.state / "clawmark.json").write_text(json.dumps(tree), encoding="utf-8")
        ran = place.run("index", env={"MY_KEY": KEY})
        assert (ran.code, ran.err) == (0, ""), ran
        assert {json.loads(request.body)["model"] for request in server.requests} == {"nomic-embed"}
        assert {request.headers["authorization"] for request in server.requests} == {
            f"Bearer {KEY}"
        }
        body = place.run("search", "heron", "--json", env={"MY_KEY": KEY}).json()
        assert (body["provider"], body["model"], "degraded" in body) == (
            "openai-compatible",
            "nomic-embed",
            False,
        )


def test_the_key_of_a_provider_entry_goes_to_no_other_address(place: Place) -> None:
    with EmbeddingServer(dims=64) as server:
        mine = {"baseUrl": "http://127.0.0.1:9/v1", "apiKey": KEY}
        search = {"provider": "mine", "model": "m", "remote": {"baseUrl": server.url}}
        tree = {"models": {"providers": {"mine": mine}}, "memorySearch": search}
        (place.state / "clawmark.json").write_text(json.dumps(tree), encoding="utf-8")
        place.run("index")
        assert server.requests and not any(
            "authorization" in request.headers for request in server.requests
        )


def test_denied_tools_are_absent_and_the_prompt_does_not_mention_them(place: Place) -> None:
    def seen(tools: object) -> tuple[list[str], bool, bool]:
        tree = {"tools": tools, "memorySearch": {"provider": "none"}}
        (place.state / "clawmark.json").write_text(json.dumps(tree), encoding="utf-8")
        with Memory.open(place.workspace, state_dir=place.state, background=False) as memory:
            text = memory.prompt(append=True).text
            names = [tool.name for tool in memory.tools(append=True)]
        return names, "memory_search" in text, "Memory Recall" in text

    assert seen({"deny": ["memory_search"]}) == (
        ["memory_get", "memory_append", "memory_forget"],
        False,
        True,
    )
    assert seen({"deny": ["group:memory"]}) == ([], False, False)
    assert seen({"allow": ["group:fs"]}) == ([], False, False)
