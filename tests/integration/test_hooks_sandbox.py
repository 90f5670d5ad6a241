"""The hooks of a coding agent obey the tool policy and the sandbox of its session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import Place

CANARY = "zanzibar"


def place_with(folder: Path, tree: dict[str, Any]) -> Place:
    place = Place(folder)
    place.home.mkdir()
    place.state.mkdir()
    place.write("MEMORY.md", f"# Facts\n\nThe heron nests by the pier of {CANARY}.\n")
    place.write("memory/birds.md", f"# Birds\n\nThe flamingo project uses a lens from {CANARY}.\n")
    (place.state / "clawmark.json").write_text(json.dumps(tree), encoding="utf-8")
    return place


def sandbox(access: str) -> dict[str, Any]:
    return {"agents": {"defaults": {"sandbox": {"mode": "all", "workspaceAccess": access}}}}


def hook(place: Place, event: str, **fields: str) -> str:
    given = json.dumps({"session_id": "s1", **fields})
    ran = place.run("hook", "claude-code", event, stdin=given)
    assert (ran.code, ran.err) == (0, ""), ran
    return ran.out


def transcript(place: Place) -> str:
    said = {"user": "Plan the heron project with tables, please.", "assistant": "Tables first."}
    lines = [
        json.dumps(
            {
                "type": role,
                "timestamp": f"2026-03-04T10:0{number}:00.000Z",
                "uuid": f"u{number}",
                "message": {"role": role, "content": [{"type": "text", "text": text}]},
                "sessionId": "s1",
            }
        )
        for number, (role, text) in enumerate(said.items())
    ]
    file = place.folder / "s1.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(file)


def files(place: Place) -> list[str]:
    return sorted(str(file.relative_to(place.workspace)) for file in place.workspace.rglob("*.md"))


def test_a_session_without_a_sandbox_is_shown_its_memory_and_gets_a_note(tmp_path: Path) -> None:
    place = place_with(tmp_path, {})
    before = files(place)
    assert CANARY in hook(place, "SessionStart")
    assert CANARY in hook(place, "UserPromptSubmit", prompt="Which lens does the flamingo use?")
    hook(place, "SessionEnd", transcript_path=transcript(place))
    assert len(files(place)) == len(before) + 1


def test_a_sandbox_without_the_workspace_is_shown_nothing_by_hooks(tmp_path: Path) -> None:
    place = place_with(tmp_path, sandbox("none"))
    before = files(place)
    assert hook(place, "SessionStart") == "{}\n"
    asked = "Which lens does the flamingo use?"
    assert hook(place, "UserPromptSubmit", prompt=asked) == "{}\n"
    hook(place, "SessionEnd", transcript_path=transcript(place))
    assert files(place) == before


@pytest.mark.parametrize("event", ["PreCompact", "SessionEnd"])
def test_a_sandbox_that_may_not_write_gets_no_note_from_hooks(tmp_path: Path, event: str) -> None:
    place = place_with(tmp_path, sandbox("ro"))
    before = files(place)
    shown = hook(place, "SessionStart")
    assert CANARY in shown and "memory_search" in shown and "memory_append" not in shown
    hook(place, event, transcript_path=transcript(place))
    assert files(place) == before


def test_hooks_describe_only_the_tools_that_the_policy_leaves(tmp_path: Path) -> None:
    place = place_with(tmp_path, {"tools": {"deny": ["memory_append", "memory_get"]}})
    shown = hook(place, "SessionStart")
    assert "memory_search" in shown
    assert "memory_append" not in shown and "memory_get" not in shown
