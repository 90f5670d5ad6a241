"""OpenClaw keys without effect: each is named in a warning, and none stops a command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clawmark.config.load import load
from clawmark.config.paths import resolve_places
from clawmark.config.schema import Loaded
from clawmark.config.unsupported import UNSUPPORTED


def loaded(folder: Path, tree: object) -> Loaded:
    file = folder / "clawmark.json"
    file.write_text(json.dumps(tree), encoding="utf-8")
    return load(
        resolve_places(
            str(folder), None, str(file), str(folder / "state"), env={"HOME": str(folder)}
        )
    )


def nested(name: str, value: object) -> dict[str, Any]:
    tree: Any = value
    for part in reversed(name.split(".")):
        tree = {part: tree}
    return tree  # type: ignore[no-any-return]


@pytest.mark.parametrize("value", [{"memory": 0}, "memory", ["memory_search"]], ids=str)
@pytest.mark.parametrize("name", [entry.name for entry in UNSUPPORTED])
def test_every_key_without_effect_is_named_in_one_warning(
    tmp_path: Path, name: str, value: object
) -> None:
    tree = nested(name, value)
    if "memory-lancedb" in name:
        tree["plugins"]["slots"] = {"memory": "memory-lancedb"}
    (warning,) = loaded(tmp_path, tree).warnings
    assert warning.startswith(f"{tmp_path / 'clawmark.json'}: {name} ")
    assert "has no effect: " in warning and warning.endswith(".") and "\n" not in warning


def test_a_group_is_one_warning_however_many_keys_it_holds(tmp_path: Path) -> None:
    mcporter = {"enabled": True, "serverName": "qmd", "startDaemon": True, "new": 1}
    (warning,) = loaded(tmp_path, {"memory": {"qmd": {"mcporter": mcporter}}}).warnings
    assert "memory.qmd.mcporter has no effect: QMD 2.8 has none of the MCP tools" in warning


@pytest.mark.parametrize(
    "tree",
    [
        {"agents": {"defaults": {"memorySearch": {"multimodal": {"enabled": False}}}}},
        {"memorySearch": {"store": {"fts": {"tokenizer": "unicode61"}}}},
        {
            "plugins": {
                "slots": {"memory": "memory-core"},
                "entries": {"telegram": {"enabled": True}},
            }
        },
        {
            "plugins": {
                "entries": {
                    "memory-lancedb": {"enabled": False, "config": {}},
                    "memory-core": {"enabled": True},
                }
            }
        },
        {"tools": {"byProvider": {"google": {"deny": ["exec"]}}, "exec": {"security": "deny"}}},
        {"plugins": 5, "agents": {"defaults": {"cliBackends": 1}}},
    ],
    ids=str,
)
def test_a_value_that_asks_for_what_happens_anyway_causes_no_warning(
    tmp_path: Path, tree: object
) -> None:
    assert loaded(tmp_path, tree).warnings == ()


def test_the_entry_of_the_agent_is_read_too(tmp_path: Path) -> None:
    policy = {"openai": {"deny": ["group:memory"]}}
    entry = {"id": "main", "tools": {"byProvider": policy}}
    (warning,) = loaded(tmp_path, {"agents": {"list": [entry]}}).warnings
    assert "agents.list[0].tools.byProvider has no effect: " in warning


def test_our_file_in_an_openclaw_folder_silences_the_warning(tmp_path: Path) -> None:
    (tmp_path / "openclaw.json").write_text(
        '{"memorySearch": {"multimodal": {"enabled": true}}}', encoding="utf-8"
    )
    (tmp_path / "workspace").mkdir()

    def warnings() -> tuple[str, ...]:
        return load(
            resolve_places(str(tmp_path / "workspace"), None, None, str(tmp_path), env={})
        ).warnings

    assert "multimodal" in warnings()[0]
    (tmp_path / "clawmark").mkdir()
    (tmp_path / "clawmark" / "clawmark.json").write_text(
        '{"memorySearch": {"multimodal": {"enabled": false}}}'
    )
    assert warnings() == ()


def test_a_secret_in_a_group_without_effect_is_not_repeated(tmp_path: Path) -> None:
    tree = {
        "plugins": {
            "slots": {"memory": "memory-lancedb"},
            "entries": {"memory-lancedb": {"config": {"storageOptions": {"key": "sk-FAKE"}}}},
        }
    }
    (warning,) = loaded(tmp_path, tree).warnings
    assert "FAKE" not in warning
