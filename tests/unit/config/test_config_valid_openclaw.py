"""Configurations that OpenClaw accepts are accepted here: what is too large is reduced, what acts
elsewhere is found.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clawmark.agent.session.setup import rollover_settings
from clawmark.agent.tools.policy import allowed_tools
from clawmark.config.keys import value_of
from clawmark.config.load import load
from clawmark.config.paths import resolve_places
from clawmark.config.schema import Loaded


def loaded(folder: Path, tree: object, agent: str | None = None) -> Loaded:
    file = folder / "clawmark.json"
    file.write_text(json.dumps(tree), encoding="utf-8")
    return load(
        resolve_places(
            str(folder), agent, str(file), str(folder / "state"), env={"HOME": str(folder)}
        )
    )


@pytest.mark.parametrize(
    ("key", "value", "used"),
    [
        ("memorySearch.query.maxResults", 20_000, 10_000),
        ("memorySearch.chunking.tokens", 200_000, 100_000),
        ("memorySearch.cache.maxEntries", 10**12, 2**31 - 1),
        ("memorySearch.sync.watchDebounceMs", 1e9, 3_600_000),
    ],
)
def test_a_number_beyond_our_limit_is_reduced_with_a_warning(
    tmp_path: Path, key: str, value: float, used: int
) -> None:
    _, group, name = key.split(".")
    made = loaded(tmp_path, {"memorySearch": {group: {name: value}}})
    assert value_of(made.settings, key) == used
    (warning,) = made.warnings
    assert f"{key} is " in warning and f"{used} is used" in warning and str(tmp_path) in warning


def test_a_session_with_the_reset_mode_none_never_ends_automatically(tmp_path: Path) -> None:
    made = loaded(
        tmp_path, {"session": {"reset": {"mode": "none", "atHour": 4, "idleMinutes": 30}}}
    )
    assert made.warnings == ()
    assert rollover_settings(made.settings) == (None, 0)


def test_a_provider_of_openclaw_that_we_lack_does_not_stop_a_command(tmp_path: Path) -> None:
    made = loaded(
        tmp_path, {"memorySearch": {"provider": "github-copilot", "fallback": "github-copilot"}}
    )
    assert made.settings.memory_search.fallback == ()
    assert made.warnings == (
        'memorySearch.fallback names "github-copilot", which is not supported; it is left out.',
    )


def test_an_agents_own_model_comes_before_the_shared_one(tmp_path: Path) -> None:
    entries = [{"id": "main"}, {"id": "work", "model": {"primary": "openai/gpt-5"}}]
    tree = {"agents": {"defaults": {"model": "ollama/small"}, "list": entries}}
    assert value_of(loaded(tmp_path, tree).settings, "agents.defaults.model") == "ollama/small"
    assert (
        value_of(loaded(tmp_path, tree, "work").settings, "agents.defaults.model") == "openai/gpt-5"
    )


ALL = ["memory_append", "memory_get", "memory_search"]
"""Lists, because the order of a set would change the names of the tests from run to run."""


@pytest.mark.parametrize(
    ("shared", "own", "denied"),
    [
        ({}, {}, []),
        ({"deny": ["group:memory"]}, {}, ALL),
        ({"deny": ["Memory_Search"]}, {}, ["memory_search"]),
        ({"deny": ["memory_*"]}, {}, ALL),
        ({"deny": ["*"], "allow": ["memory_get"]}, {}, ALL),
        ({"allow": ["read", "exec"]}, {}, ALL),
        ({"allow": ["read", "group:memory"]}, {}, []),
        ({"allow": ["memory_get"]}, {}, ["memory_append", "memory_search"]),
        ({"allow": []}, {}, []),
        ({"allow": ["read"]}, {"allow": ["memory_search"]}, ALL),
        (
            {"allow": ["memory_search", "memory_get"]},
            {"deny": ["memory_get"]},
            ["memory_append", "memory_get"],
        ),
    ],
    ids=str,
)
def test_the_lists_of_tools_leave_out_memory_tools(
    tmp_path: Path, shared: dict[str, object], own: dict[str, object], denied: list[str]
) -> None:
    made = loaded(tmp_path, {"tools": shared, "agents": {"list": [{"id": "main", "tools": own}]}})
    left = allowed_tools(ALL, "main", made.settings.tools)
    assert [name for name in ALL if name not in left] == denied
    assert made.warnings == ()


def test_the_second_switch_for_transcripts_removes_them(tmp_path: Path) -> None:
    both = {"sources": ["memory", "sessions"], "experimental": {"sessionMemory": False}}
    assert loaded(tmp_path, {"memorySearch": both}).settings.memory_search.sources == ("memory",)
    both["experimental"] = {"sessionMemory": True}
    assert loaded(tmp_path, {"memorySearch": both}).settings.memory_search.sources == (
        "memory",
        "sessions",
    )
