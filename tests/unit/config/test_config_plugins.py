"""The settings of memory plugins: which entries count, and which are reported as unused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clawmark.config.load import load
from clawmark.config.paths import resolve_places
from clawmark.config.schema import Loaded
from clawmark.model.errors import ConfigError


def loaded(tmp_path: Path, plugins: object) -> Loaded:
    (tmp_path / "workspace").mkdir(exist_ok=True)
    file = tmp_path / "clawmark.json"
    file.write_text(json.dumps({"plugins": plugins}), encoding="utf-8")
    places = resolve_places(str(tmp_path / "workspace"), None, str(file), str(tmp_path / "state"))
    return load(places, {})


LANCE = {"memory-lancedb": {"enabled": True, "config": {"autoCapture": True}}}
COMBINED = {"memory-core": {"config": {"recall": "memory-lancedb"}}}


@pytest.mark.parametrize(
    ("plugins", "warning"),
    [
        ({"slots": {"memory": "memory-lancedb"}, "entries": LANCE}, ""),
        ({"entries": {**LANCE, **COMBINED}}, ""),
        ({"slots": {"memory": "acme"}, "entries": {**LANCE, **COMBINED}}, ""),
        ({"entries": {"memory-core": {"enabled": True, "config": {}}}}, ""),
        ({"entries": {"telegram": {"enabled": 5}, "slack": 7}}, ""),
        (
            {"entries": LANCE},
            'plugins.entries.memory-lancedb has no effect: plugins.slots.memory is "memory-core".',
        ),
        (
            {"slots": {"memory": "none"}, "entries": LANCE},
            'plugins.entries.memory-lancedb has no effect: plugins.slots.memory is "none".',
        ),
        (
            {"slots": {"memory": "memory-lancedb"}, "entries": COMBINED},
            'plugins.entries.memory-core has no effect: plugins.slots.memory is "memory-lancedb".',
        ),
        (
            {"entries": {"memory-core": {"config": {"dreaming": {"enabled": True}}}}},
            "plugins.entries.memory-core.config.dreaming has no effect: "
            "memory-core takes its settings from memorySearch.",
        ),
    ],
)
def test_an_entry_that_is_not_used_is_reported(
    tmp_path: Path, plugins: dict[str, Any], warning: str
) -> None:
    assert loaded(tmp_path, plugins).warnings == ((warning,) if warning else ())


def test_the_entry_of_the_plugin_in_the_slot_is_kept_as_written(tmp_path: Path) -> None:
    config = {"embedding": {"apiKey": "${KEY}"}, "list": [1, 2]}
    plugins = {"slots": {"memory": "acme"}, "entries": {"acme": {"config": config}}}
    options = loaded(tmp_path, plugins).settings.plugins
    assert options.slots.memory == "acme" and options.entry("acme").config == config
    assert options.has_memory and options.has_hooks


def test_hooks_are_looked_for_only_where_a_plugin_may_have_some(tmp_path: Path) -> None:
    assert not loaded(tmp_path, {"slots": {"memory": "memory-core"}}).settings.plugins.has_hooks
    assert not loaded(tmp_path, {"slots": {"memory": "none"}}).settings.plugins.has_hooks
    assert loaded(tmp_path, {"entries": COMBINED}).settings.plugins.has_hooks


@pytest.mark.parametrize("slot", [5, "", "two words", None, {"name": "acme"}])
def test_a_slot_that_is_not_a_name_is_refused(tmp_path: Path, slot: object) -> None:
    with pytest.raises(ConfigError, match=r"line 1: plugins\.slots\.memory must be a name"):
        loaded(tmp_path, {"slots": {"memory": slot}})
