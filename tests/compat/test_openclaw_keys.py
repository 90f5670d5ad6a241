"""Every memory-related key of two releases of OpenClaw acts, causes a warning, or does not apply.

`data/openclaw_keys_*.json` has the names of the keys, recorded from the published packages by
`record_openclaw_keys.mjs`. Each key is written into a configuration file with a few values, and the
file is loaded: a key that acts changes a setting (whose effect `test_every_setting` shows) or has
its value checked, and a key without effect is named in a warning. `NOT_APPLICABLE` lists the rest,
each group with the reason why a memory has nothing to do with it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from clawmark.config.keys import BY_NAME
from clawmark.config.load import load
from clawmark.config.paths import resolve_places
from clawmark.model.errors import ConfigError

DATA = Path(__file__).parent / "data"
RELEASES = ("2026.3.24", "2026.9.6")
KEYS = {
    release: json.loads((DATA / f"openclaw_keys_{release}.json").read_text(encoding="utf-8"))[
        "keys"
    ]
    for release in RELEASES
}
VALUES: tuple[object, ...] = (
    False,
    True,
    7,
    "memory",
    "ro",
    "idle",
    "minimal",
    "https://embeddings.example/v1",
    ["memory_search"],
    ["sessions"],
    {"memory": ["memory_search"]},
)
"""One of them asks for something else than what happens anyway."""
NAMES = {
    ("agents", "entries"): "main",
    ("hooks", "internal", "entries"): "session-memory",
    ("channels",): "telegram",
}
"""What `*` stands for below a group."""
BESIDE: dict[str, dict[str, object]] = {
    "list": {"id": "main"},
    "extraPaths": {"path": "notes"},
}
"""What else an object in this group needs."""

AGENT = r"agents\.(defaults|list\.\[\]|entries\.\*)\."
NOT_APPLICABLE = {
    AGENT + r"compaction\.(enabled|mode|model|provider|thinkingLevel|timeoutSeconds|notifyUser)$": (
        "how the host compacts a conversation; the memory flushes before it does"
    ),
    AGENT + r"compaction\.(customInstructions|identifier\w+|qualityGuard\.\w+)$": (
        "how the host summarises a conversation"
    ),
    AGENT
    + r"compaction\.(keepRecentTokens|maxHistoryShare|recentTurnsPreserve|reserveTokens"
    + r"|maxActiveTranscriptBytes|midTurnPrecheck\.enabled)$": (
        "how much of a conversation the host keeps; the flush goes by reserveTokensFloor"
    ),
    AGENT + "envelope": "how the host labels messages of channels; labels are removed here",
    AGENT + "heartbeat": "when the host runs heartbeats and where it sends their answers",
    AGENT + r"model\.fallbacks$": (
        "which models the host tries next; a flush uses the primary one and is tried again later"
    ),
    AGENT + "skip": "files are only created by `clawmark init`",
    AGENT + r"timeFormat$": "how the host writes times for people",
    AGENT + r"sandbox\.(docker\.memory|perSession|scope|session|workspaceRoot)": (
        "how the host's containers are made; mode and workspaceAccess say what they may do"
    ),
    r"(.*\.)?tools\.codeMode\.memoryLimitBytes$": "main memory of a process",
    r"plugins\.slots\.contextEngine$": "another slot",
    r"plugins\.entries\.[\w-]+\.(hooks|llm|subagent)\.": (
        "what the host's own plugin runtime allows a plugin"
    ),
    r"session\.(dmScope|groupScope)$": "how the host makes session keys; the key is what counts",
    r"session\.maintenance\.": "how long the host keeps its transcripts",
}
MAY_ACT = re.compile(AGENT + r"(heartbeat|timeFormat|model\.fallbacks)")
"""Listed keys of which some act, and one inside of a value that acts."""


class Treatment(NamedTuple):
    """What happened to a key with all of the values."""

    settings: set[str]
    """Our keys that were set, or whose values were refused."""
    warnings: set[str]


def tree_with(key: str, value: object) -> dict[str, Any]:
    """Return the tree of a configuration file with one key."""
    parts = key.split(".")
    tree: Any = value
    for place in range(len(parts) - 1, -1, -1):
        part, above = parts[place], tuple(parts[:place])
        if part == "[]":
            beside = BESIDE.get(above[-1], {})
            tree = [{**beside, **tree} if isinstance(tree, dict) else tree]
            continue
        tree = {NAMES.get(above, "one") if part == "*" else part: tree}
    assert isinstance(tree, dict)
    return tree


def treat(folder: Path, key: str) -> Treatment:
    file, treatment = folder / "clawmark.json", Treatment(set(), set())
    for value in VALUES:
        file.write_text(json.dumps(tree_with(key, value)), encoding="utf-8")
        try:
            loaded = load(
                resolve_places(
                    str(folder), "main", str(file), str(folder / "state"), env={"HOME": str(folder)}
                )
            )
        except ConfigError as error:
            if written_as(key).startswith(error.key):
                treatment.settings.add(error.key)
            continue
        treatment.settings.update(loaded.origins)
        treatment.warnings.update(loaded.warnings)
        if loaded.origins or loaded.warnings:
            break
    return treatment


def written_as(key: str) -> str:
    """Return a key as an error message shows it."""
    for group, name in NAMES.items():
        above = ".".join(group)
        key = key.replace(f"{above}.*", f"{above}.{name}")
    return key.replace(".[]", "[0]")


def reasons(key: str) -> list[str]:
    return [reason for pattern, reason in NOT_APPLICABLE.items() if re.match(pattern, key)]


@pytest.mark.parametrize("key", sorted({key for keys in KEYS.values() for key in keys}))
def test_the_key_acts_or_warns_or_does_not_apply(tmp_path: Path, key: str) -> None:
    treatment = treat(tmp_path, key)
    if listed := reasons(key):
        assert len(listed) == 1
        assert not treatment.settings or MAY_ACT.match(key)
        return
    warned = [text for text in treatment.warnings if "no effect" in text or "is ignored" in text]
    assert treatment.settings or warned, f"{key} is ignored without a word"


@pytest.mark.parametrize("release", RELEASES)
def test_the_list_has_what_the_release_has(release: str) -> None:
    keys = KEYS[release]
    assert keys == sorted(set(keys)) and len(keys) > 250
    search = "agents.defaults.memorySearch." if release == "2026.3.24" else "memory.search."
    assert {f"{search}provider", "tools.deny", "plugins.slots.memory", "memory.citations"} <= {
        *keys
    }


@pytest.mark.parametrize("pattern", NOT_APPLICABLE)
def test_every_reason_is_needed(pattern: str) -> None:
    assert any(re.match(pattern, key) for keys in KEYS.values() for key in keys)


def test_a_key_that_acts_is_one_of_ours(tmp_path: Path) -> None:
    (setting,) = treat(tmp_path, "agents.list.[].tools.deny").settings & BY_NAME.keys()
    assert setting == "tools.deny"


def test_the_tool_lists_of_a_group_are_named_in_a_warning(tmp_path: Path) -> None:
    treatment = treat(tmp_path, "channels.*.groups.*.tools.deny")
    (warning,) = treatment.warnings
    assert "channels.telegram.groups.one.tools has no effect" in warning
