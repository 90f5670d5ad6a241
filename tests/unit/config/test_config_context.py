"""The settings of what a session sees: OpenClaw's keys under `agents.defaults`, and who else may
search.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clawmark.config.load import load
from clawmark.config.paths import resolve_places
from clawmark.config.schema import Loaded
from clawmark.model.errors import ConfigError


def loaded(folder: Path, config: object, inside: object = None) -> Loaded:
    state, workspace = folder / "state", folder / "workspace"
    state.mkdir()
    (workspace / ".clawmark").mkdir(parents=True)
    (state / "clawmark.json").write_text(json.dumps(config))
    if inside is not None:
        (workspace / ".clawmark" / "settings.json").write_text(json.dumps(inside))
    return load(resolve_places(str(workspace), None, None, str(state), env={"HOME": str(folder)}))


def test_an_openclaw_file_is_accepted_without_warnings(tmp_path: Path) -> None:
    startup = {
        "enabled": True,
        "applyOn": ["new", "reset"],
        "dailyMemoryDays": 3,
        "maxFileBytes": 16384,
        "maxFileChars": 1200,
        "maxTotalChars": 2800,
    }
    defaults = {
        "bootstrapMaxChars": 12_000,
        "bootstrapTotalMaxChars": 60_000,
        "startupContext": startup,
        "model": "x",
    }
    made = loaded(tmp_path, {"agents": {"defaults": defaults}})
    settings = made.settings
    assert made.warnings == ()
    assert (settings.bootstrap_max_chars, settings.bootstrap_total_max_chars) == (12_000, 60_000)
    assert (
        settings.startup_context.daily_memory_days,
        settings.startup_context.max_total_chars,
    ) == (3, 2800)


def test_patterns_of_a_path_add_up_and_a_path_without_pattern_is_searched_as_a_whole(
    tmp_path: Path,
) -> None:
    paths = [
        {"path": "/srv/a", "pattern": "one/*.md"},
        {"path": "/srv/a/", "pattern": "./two/**"},
        {"path": "/srv/b", "pattern": "one/*.md"},
        "/srv/b",
    ]
    made = loaded(tmp_path, {"memorySearch": {"extraPaths": paths}})
    assert made.settings.memory_search.extra_paths == ("/srv/a", "/srv/b")
    assert made.settings.memory_search.extra_patterns == {"/srv/a": ("one/*.md", "two/**")}


@pytest.mark.parametrize("pattern", ["*.{md,txt}", "!drafts/*", "/abs/*.md", 7])
def test_an_unsupported_pattern_is_a_warning_and_the_whole_path_is_searched(
    tmp_path: Path, pattern: object
) -> None:
    made = loaded(
        tmp_path, {"memorySearch": {"extraPaths": [{"path": "/srv/b", "pattern": pattern}]}}
    )
    assert made.settings.memory_search.extra_patterns == {}
    (warning,) = made.warnings
    assert "/srv/b" in warning and "pattern" in warning


def test_newer_openclaw_keys_are_accepted(tmp_path: Path) -> None:
    search = {"inputType": "text", "queryInputType": "query", "rememberAcrossConversations": True}
    paths = [
        {"path": "/srv/a", "pattern": "**/*.md"},
        {"path": "/srv/b", "pattern": "public/*.md"},
        "/srv/c",
    ]
    made = loaded(tmp_path, {"memory": {"search": {**search, "extraPaths": paths}}})
    remote = made.settings.memory_search.remote
    assert (remote.query_input_type, remote.document_input_type) == ("query", "text")
    assert made.settings.memory_search.extra_paths == ("/srv/a", "/srv/b", "/srv/c")
    assert made.settings.memory_search.extra_patterns == {"/srv/b": ("public/*.md",)}
    assert made.warnings == ()
    (tmp_path / "other").mkdir()
    with pytest.raises(ConfigError, match=r"memory\.search\.documentInputType"):
        loaded(tmp_path / "other", {"memory": {"search": {"documentInputType": 3}}})


def test_shared_sessions_are_named_by_kind(tmp_path: Path) -> None:
    made = loaded(tmp_path, {"memory": {"sharedSessions": ["subagent", "cron"]}})
    assert made.settings.memory.shared_sessions == ("subagent", "cron")


@pytest.mark.parametrize("value", ["allow", ["everyone"], ["main"], True, {"group": True}])
def test_other_values_are_refused(tmp_path: Path, value: object) -> None:
    with pytest.raises(ConfigError, match="sharedSessions"):
        loaded(tmp_path, {"memory": {"sharedSessions": value}})


def test_the_workspace_file_cannot_set_shared_sessions(tmp_path: Path) -> None:
    made = loaded(
        tmp_path,
        {},
        inside={
            "memory": {"sharedSessions": ["group"]},
            "agents": {"defaults": {"workspace": "/"}},
        },
    )
    assert made.settings.memory.shared_sessions == ()
    assert "may set memorySearch.chunking.* and memorySearch.query.* only" in made.warnings[0]
