"""The keys of a conversation: read from OpenClaw's places, checked, and silent about what is the
host's.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clawmark.config.keys import value_of
from clawmark.config.load import load
from clawmark.config.paths import resolve_places
from clawmark.config.schema import Loaded
from clawmark.model.errors import ConfigError

FLUSH = "agents.defaults.compaction.memoryFlush."
NOTE = "hooks.internal.entries.session-memory."


def loaded(tmp_path: Path, tree: object) -> Loaded:
    (tmp_path / "clawmark.json").write_text(json.dumps(tree), encoding="utf-8")
    places = resolve_places(
        str(tmp_path), None, str(tmp_path / "clawmark.json"), str(tmp_path / "state")
    )
    return load(places)


def test_an_openclaw_file_is_read_without_a_warning(tmp_path: Path) -> None:
    tree = {
        "agents": {
            "defaults": {
                "model": {"primary": "anthropic/claude-opus-4-6", "fallbacks": ["openai/gpt-5.4"]},
                "contextTokens": 150_000,
                "compaction": {
                    "mode": "safeguard",
                    "keepRecentTokens": 9,
                    "reserveTokensFloor": 30_000,
                    "memoryFlush": {
                        "enabled": True,
                        "softThresholdTokens": 5000,
                        "prompt": "Save\nit.",
                        "forceFlushTranscriptBytes": "1.5MB",
                    },
                },
            }
        },
        "session": {
            "scope": "per-sender",
            "reset": {"mode": "daily", "atHour": 5, "idleMinutes": 90, "other": 1},
        },
        "hooks": {
            "token": "x",
            "internal": {
                "enabled": True,
                "entries": {"boot-md": {"x": 1}, "session-memory": {"messages": 25}},
            },
        },
    }
    found = loaded(tmp_path, tree)
    assert found.warnings == ()
    assert {name: value_of(found.settings, name) for name in found.origins} == {
        "agents.defaults.model": "anthropic/claude-opus-4-6",
        "agents.defaults.contextTokens": 150_000,
        "agents.defaults.compaction.reserveTokensFloor": 30_000,
        f"{FLUSH}enabled": True,
        f"{FLUSH}softThresholdTokens": 5000,
        f"{FLUSH}prompt": "Save\nit.",
        f"{FLUSH}forceFlushTranscriptBytes": 1_572_864,
        "hooks.internal.enabled": True,
        f"{NOTE}messages": 25,
        "session.reset.mode": "daily",
        "session.reset.atHour": 5,
        "session.reset.idleMinutes": 90,
    }


@pytest.mark.parametrize(
    ("given", "size"),
    [
        (0, 0),
        (5, 5),
        (2.5, 2),
        ("2mb", 2 << 20),
        ("64 KiB", 64 << 10),
        ("1g", 1 << 30),
        ("7", 7),
        ("0", 0),
    ],
)
def test_a_size_is_a_number_or_a_text(tmp_path: Path, given: object, size: int) -> None:
    found = loaded(
        tmp_path,
        {
            "agents": {
                "defaults": {"compaction": {"memoryFlush": {"forceFlushTranscriptBytes": given}}}
            }
        },
    )
    assert value_of(found.settings, f"{FLUSH}forceFlushTranscriptBytes") == size


WRONG: list[tuple[str, object]] = [
    ("forceFlushTranscriptBytes", "2 miles"),
    ("forceFlushTranscriptBytes", -1),
    ("forceFlushTranscriptBytes", True),
    ("softThresholdTokens", -5),
    ("softThresholdTokens", "many"),
    ("enabled", "yes"),
    ("prompt", 5),
    ("prompt", "x" * 20_001),
    ("model", {}),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_wrong_value_is_refused_with_its_place(tmp_path: Path, name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"line 1: .*memoryFlush.{name}"):
        loaded(tmp_path, {"agents": {"defaults": {"compaction": {"memoryFlush": {name: value}}}}})


def test_an_unknown_key_of_the_flush_is_a_warning_with_the_nearest(tmp_path: Path) -> None:
    found = loaded(
        tmp_path,
        {"agents": {"defaults": {"compaction": {"memoryFlush": {"softTresholdTokens": 1}}}}},
    )
    assert (
        "Did you mean agents.defaults.compaction.memoryFlush.softThresholdTokens?"
        in found.warnings[0]
    )
