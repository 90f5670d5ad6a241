"""The tool policy as OpenClaw files write it: for all agents, one agent, sub-agents and kinds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clawmark.config.load import load
from clawmark.config.paths import resolve_places
from clawmark.config.schema import Loaded
from clawmark.config.schema.tools import ToolRule
from clawmark.model.errors import ConfigError


def loaded(folder: Path, tree: object, agent: str = "main") -> Loaded:
    file = folder / "clawmark.json"
    file.write_text(json.dumps(tree), encoding="utf-8")
    places = resolve_places(
        str(folder), agent, str(file), str(folder / "state"), env={"HOME": str(folder)}
    )
    return load(places)


def test_the_lists_for_all_agents_and_those_of_the_agent_both_apply(tmp_path: Path) -> None:
    tree = {
        "tools": {"deny": ["exec"]},
        "agents": {"list": [{"id": "main"}, {"id": "work", "tools": {"allow": ["memory_get"]}}]},
    }
    assert loaded(tmp_path, tree).settings.tools.layers == (ToolRule(deny=("exec",)),)
    assert loaded(tmp_path, tree, "work").settings.tools.layers == (
        ToolRule(deny=("exec",)),
        ToolRule(allow=("memory_get",)),
    )


def test_newer_files_name_agents_by_key(tmp_path: Path) -> None:
    entries = {"main": {"tools": {"profile": "minimal"}, "sandbox": {"mode": "all"}}}
    settings = loaded(tmp_path, {"agents": {"entries": entries}}).settings
    assert (settings.tools.profile, settings.sandbox.mode) == ("minimal", "all")


def test_the_agents_own_sandbox_comes_before_the_shared_one(tmp_path: Path) -> None:
    tree = {
        "agents": {
            "defaults": {"sandbox": {"mode": "non-main", "workspaceAccess": "rw"}},
            "list": [
                {"id": "main", "sandbox": {"workspaceAccess": "ro", "docker": {"image": "x"}}}
            ],
        }
    }
    assert tuple(loaded(tmp_path, tree).settings.sandbox) == ("non-main", "ro")


def test_each_kind_of_session_has_its_key(tmp_path: Path) -> None:
    tree = {"tools": {"bySession": {"cron": {"deny": ["memory_append"]}}}}
    assert loaded(tmp_path, tree).settings.tools.by_session.cron.deny == ("memory_append",)


def test_an_unknown_kind_of_session_is_named_in_a_warning(tmp_path: Path) -> None:
    (warning,) = loaded(tmp_path, {"tools": {"bySession": {"crom": {"deny": []}}}}).warnings
    assert "there is no key tools.bySession.crom" in warning


@pytest.mark.parametrize("key", ["allow", "alsoAllow"])
def test_sub_agents_read_the_memory_if_a_memory_tool_is_named_for_them(
    tmp_path: Path, key: str
) -> None:
    tree = {"tools": {"subagents": {"tools": {key: ["read", "memory_search"]}}}}
    made = loaded(tmp_path, tree)
    assert made.settings.memory.shared_sessions == ("subagent",)
    assert made.settings.tools.subagents.tools.allow == ("read", "memory_search")
    assert made.origin("memory.sharedSessions").startswith("file ")


def test_other_tools_of_sub_agents_change_nothing_about_the_memory(tmp_path: Path) -> None:
    tree = {"tools": {"subagents": {"tools": {"alsoAllow": ["browser"]}}}}
    settings = loaded(tmp_path, tree).settings
    assert settings.memory.shared_sessions == settings.tools.subagents.tools.allow == ()


def test_a_model_with_fallbacks_only_is_no_model(tmp_path: Path) -> None:
    tree = {"agents": {"defaults": {"model": {"fallbacks": ["openai/gpt-5"]}}}}
    assert loaded(tmp_path, tree).settings.model == ""


def test_a_sandbox_mode_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'sandbox\.mode must be "off", "non-main" or "all"'):
        loaded(tmp_path, {"agents": {"defaults": {"sandbox": {"mode": "on"}}}})
