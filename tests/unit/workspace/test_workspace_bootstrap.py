"""The files a workspace starts with, and the one that never comes back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clawmark.model.errors import WorkspaceError
from clawmark.workspace.bootstrap import RITUAL, SEEDED, ensure_workspace, template

NOW = "2026-02-24T10:00:00Z"
LATER = "2026-02-25T10:00:00Z"


def ensure(root: Path, now: str = NOW) -> list[str]:
    return ensure_workspace(str(root), now=now)


def state(root: Path) -> dict[str, object]:
    loaded: dict[str, object] = json.loads(
        (root / ".clawmark" / "workspace-state.json").read_text()
    )
    return loaded


def test_a_new_workspace_gets_every_template(tmp_path: Path) -> None:
    root = tmp_path / "deep" / "agent"
    assert ensure(root) == [*SEEDED, RITUAL]
    for name in (*SEEDED, RITUAL):
        assert (root / name).read_text() == template(name)
    assert state(root) == {"version": 1, "bootstrapSeededAt": NOW}


def test_memory_files_are_not_created_with_the_workspace(tmp_path: Path) -> None:
    ensure(tmp_path)
    assert not (tmp_path / "MEMORY.md").exists()
    assert not (tmp_path / "memory").exists()


def test_nothing_is_ever_overwritten(tmp_path: Path) -> None:
    (tmp_path / "SOUL.md").write_text("mine\n")
    (tmp_path / "USER.md").symlink_to("elsewhere.md")
    created = ensure(tmp_path)
    assert "SOUL.md" not in created
    assert "USER.md" not in created
    assert (tmp_path / "SOUL.md").read_text() == "mine\n"
    assert not (tmp_path / "elsewhere.md").exists()


def test_the_ritual_never_returns_after_it_was_deleted(tmp_path: Path) -> None:
    ensure(tmp_path)
    (tmp_path / RITUAL).unlink()
    assert ensure(tmp_path, LATER) == []
    assert state(tmp_path) == {"version": 1, "bootstrapSeededAt": NOW, "setupCompletedAt": LATER}
    (tmp_path / "AGENTS.md").unlink()
    assert ensure(tmp_path) == ["AGENTS.md"]
    assert not (tmp_path / RITUAL).exists()


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    ensure(tmp_path)
    assert ensure(tmp_path, LATER) == []
    assert state(tmp_path) == {"version": 1, "bootstrapSeededAt": NOW}


@pytest.mark.parametrize(
    "sign",
    ["memory/", "MEMORY.md", ".git/", "IDENTITY.md", "USER.md", ".openclaw/workspace-state.json"],
)
def test_a_used_workspace_gets_no_first_run_ritual(tmp_path: Path, sign: str) -> None:
    if sign.endswith("/"):
        (tmp_path / sign).mkdir()
    else:
        (tmp_path / sign).parent.mkdir(exist_ok=True)
        (tmp_path / sign).write_text("lived in\n")
    assert RITUAL not in ensure(tmp_path)
    assert state(tmp_path) == {"version": 1, "setupCompletedAt": NOW}


@pytest.mark.parametrize("content", ["", "not json", "[]", "[" * 100_000])
def test_a_damaged_state_file_never_brings_the_ritual_back(tmp_path: Path, content: str) -> None:
    ensure(tmp_path)
    (tmp_path / RITUAL).unlink()
    (tmp_path / ".clawmark" / "workspace-state.json").write_text(content)
    assert ensure(tmp_path) == []


def test_new_workspace_holds_only_the_files_that_are_reported(tmp_path: Path) -> None:
    made = ensure(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {*made, ".clawmark"}


def test_a_file_named_like_the_state_folder_of_openclaw_is_ignored(tmp_path: Path) -> None:
    (tmp_path / ".openclaw").write_text("a file")
    assert ensure_workspace(str(tmp_path)) == [*SEEDED, RITUAL]


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "agent").write_text("a file")
    with pytest.raises(WorkspaceError, match="cannot be set up"):
        ensure(tmp_path / "agent")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        (
            "AGENTS.md",
            (
                *(
                    "## First Run",
                    "## Session Startup",
                    "## Memory",
                    "## Red Lines",
                    "BOOTSTRAP.md",
                    "main session",
                ),
                *(
                    "trash",
                    "Inside and Outside",
                    "In Groups",
                    "reactions",
                    "heartbeat-state.json",
                    "scheduled job",
                ),
            ),
        ),
        ("SOUL.md", ("## Boundaries", "## Vibe", "## Continuity", "tell your person")),
        ("TOOLS.md", ("devices", "hosts", "voices", "Skills", "grants no access")),
        ("IDENTITY.md", ("**Name:**", "**Creature:**", "**Vibe:**", "**Emoji:**", "**Avatar:**")),
        (
            "USER.md",
            (
                "**Name:**",
                "**What to call them:**",
                "**Pronouns:**",
                "**Timezone:**",
                "**Notes:**",
                "## Context",
            ),
        ),
        (
            "BOOTSTRAP.md",
            (
                "nothing to remember",
                "IDENTITY.md",
                "USER.md",
                "SOUL.md",
                "emoji",
                "Delete this file",
                "messenger",
            ),
        ),
    ],
)
def test_a_template_says_what_its_file_is_for(name: str, parts: tuple[str, ...]) -> None:
    text = template(name)
    assert [part for part in parts if part not in text] == []


def test_the_heartbeat_starts_with_nothing_to_do() -> None:
    lines = [line for line in template("HEARTBEAT.md").splitlines() if line.strip()]
    assert all(line.startswith(("#", "<!--")) for line in lines)
