"""`clawmark uninstall` lists what Clawmark has made and removes it; memory is kept by default."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import HANG_SECONDS, Place, new_place

NOTE = "The heron nests behind the boathouse"

# Kills itself right before the call that removes or changes something for the Nth time.
KILLED = r"""
import os, shutil, signal, sys
count = 0
def counted(real):
    def call(*arguments, **named):
        global count
        count += 1
        if count == int(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **named)
    return call
for name in ("unlink", "rmdir", "replace", "mkdir"):
    setattr(os, name, counted(getattr(os, name)))
from clawmark.cli import main
raise SystemExit(main(["uninstall", "--yes"]))
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A machine on which Clawmark was used: notes, index, history, a coding agent, completion."""
    place = new_place(tmp_path)
    (place.home / ".claude").mkdir()
    (place.home / ".claude" / "settings.json").write_text('{\n  "theme": "dark"\n}\n')
    assert place.run("remember", NOTE).code == 0
    assert place.run("index").code == 0
    assert place.run("config", "set", "memory.citations", "on").code == 0
    assert place.run("install", "claude-code").code == 0
    (place.home / ".zfunc").mkdir()
    script = place.run("completion", "zsh").out
    (place.home / ".zfunc" / "_clawmark").write_text(script, encoding="utf-8")
    return place


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def test_the_list_names_everything_and_changes_nothing(place: Place) -> None:
    before = files(place.folder)
    ran = place.run("uninstall", "--dry-run")
    assert ran.code == 0
    for part in (".claude/settings.json", ".zfunc/_clawmark", "/state/agents", "/state/memory"):
        assert part in ran.out
    assert "pip uninstall clawmark" in ran.out
    assert files(place.folder) == before


def test_everything_but_the_memory_is_removed(place: Place) -> None:
    memory = files(place.workspace)
    ran = place.run("uninstall", "--yes")
    assert ran.code == 0, ran.err
    assert not place.state.exists()
    assert files(place.workspace) == memory
    assert files(place.home) == {".claude/settings.json": b'{\n  "theme": "dark"\n}\n'}


def test_a_second_uninstall_finds_nothing(place: Place) -> None:
    place.run("uninstall", "--yes")
    ran = place.run("uninstall", "--yes")
    assert ran.code == 0 and "Nothing was found that Clawmark has made." in ran.out
    assert not place.state.exists()


def test_with_memory_the_memory_files_go_too_and_other_files_stay(place: Place) -> None:
    place.write("thesis.txt", "mine")
    place.write("AGENTS.md", "my own rules")
    ran = place.run("uninstall", "--yes", "--with-memory", "--json")
    assert ran.code == 0 and ran.json()["done"] is True
    assert set(files(place.workspace)) == {"thesis.txt", "AGENTS.md"}
    assert not place.state.exists()


def test_chats_are_kept_without_with_memory(place: Place) -> None:
    chats = next(place.state.glob("agents/*")) / "sessions"
    chats.mkdir(exist_ok=True)
    (chats / "one.jsonl").write_text("{}\n", encoding="utf-8")
    kept = place.run("uninstall", "--yes", "--json").json()["kept"]
    assert any(line.startswith(f"{chats} (chats;") for line in kept)
    assert [file for file in place.state.rglob("*") if file.is_file()] == [chats / "one.jsonl"]


def test_other_files_in_the_state_folder_are_kept_and_named(place: Place) -> None:
    (place.state / "photos").mkdir()
    (place.state / "photos" / "cat.jpg").write_bytes(b"cat")
    ran = place.run("uninstall", "--yes", env={"COLUMNS": "300"})
    assert f"{place.state / 'photos'} (not made by Clawmark)" in ran.out
    assert set(files(place.state)) == {"photos/cat.jpg"}


def test_a_state_folder_that_is_also_the_workspace_is_kept(place: Place) -> None:
    env = {"CLAWMARK_STATE_DIR": str(place.workspace)}
    place.run("index", env=env)
    before = files(place.workspace)
    ran = place.run("uninstall", "--yes", env=env)
    assert "both state folder and workspace" in ran.out
    assert files(place.workspace) == before


def test_nothing_behind_a_link_is_removed(place: Place) -> None:
    outside = place.folder / "outside"
    outside.mkdir()
    (outside / "precious.txt").write_text("keep", encoding="utf-8")
    (place.state / "batches").symlink_to(outside)
    assert place.run("uninstall", "--yes").code == 0
    assert (outside / "precious.txt").exists() and not place.state.exists()


def test_a_completion_script_of_another_program_is_kept(place: Place) -> None:
    script = place.home / ".zfunc" / "_clawmark"
    script.write_text("# somebody else's\n", encoding="utf-8")
    place.run("uninstall", "--yes")
    assert script.exists()


def test_a_line_of_the_shell_settings_is_said_and_not_changed(place: Place) -> None:
    settings = place.home / ".bashrc"
    settings.write_text('x=1\neval "$(clawmark completion bash)"\n', encoding="utf-8")
    ran = place.run("uninstall", "--yes", "--json")
    assert f"{settings}, line 2 runs clawmark: remove the line." in ran.json()["unreachable"]
    assert "clawmark" in settings.read_text(encoding="utf-8")


def test_without_a_terminal_it_has_to_be_confirmed_by_a_flag(place: Place) -> None:
    before = files(place.folder)
    ran = place.run("uninstall")
    assert ran.code == 2 and "--yes" in ran.err
    assert place.run("uninstall", "--json").json()["done"] is False
    assert files(place.folder) == before


def test_an_index_outside_of_the_state_folder_is_removed(place: Place) -> None:
    index = place.folder / "elsewhere" / "index.sqlite"
    place.run("config", "set", "memorySearch.store.path", str(index))
    place.run("index")
    assert index.exists()
    assert place.run("uninstall", "--yes").code == 0
    assert list(index.parent.iterdir()) == []


def mistaken_state(folder: Path) -> dict[str, bytes]:
    """A project whose folders have the names of those in a state folder."""
    for name in (
        *("logs/server.log", "agents/planner/prompt.md", "agents/planner/sessions.py"),
        *("memory/notes.md", "memory/shop.sqlite", "plugins/auth.json", "sources/main.c"),
        *("versions/1.0/changes.md", "install/setup.sh", "locks/readme.md", "edits/draft.md"),
        *("batches/jan.csv", "counts/jan.json", "providers/aws.json", "qmd/thesis.qmd"),
        *("agents/planner/history.txt", "install/claude-code/notes.md", "mcp-token.txt"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("the user's own", encoding="utf-8")
    return files(folder)


@pytest.mark.parametrize("flags", [(), ("--with-memory",)])
def test_a_project_named_as_the_state_folder_loses_nothing(
    place: Place, flags: tuple[str, ...]
) -> None:
    project = place.folder / "project"
    before = mistaken_state(project)
    env = {"CLAWMARK_STATE_DIR": str(project)}
    assert place.run("uninstall", "--yes", *flags, env=env).code == 0
    assert files(project) == before


def test_a_project_that_was_the_state_folder_loses_only_what_clawmark_made(place: Place) -> None:
    project = place.folder / "project"
    before = mistaken_state(project)
    env = {"CLAWMARK_STATE_DIR": str(project)}
    for words in (("remember", "A heron"), ("index",), ("config", "set", "memory.citations", "on")):
        assert place.run(*words, env=env).code == 0
    assert files(project) != before
    assert place.run("uninstall", "--yes", env=env).code == 0
    assert files(project) == before


@pytest.mark.parametrize(
    "inside", ["agents/main/proposals/mine", "versions/notes-0123abcd", "memory/lancedb/mine"]
)
def test_a_workspace_inside_the_state_folder_is_kept(place: Place, inside: str) -> None:
    workspace = place.state / inside
    workspace.mkdir(parents=True)
    (workspace / "MEMORY.md").write_text("- The heron nests here\n", encoding="utf-8")
    (workspace / "shed.txt").write_text("mine", encoding="utf-8")
    env = {"CLAWMARK_WORKSPACE": str(workspace)}
    assert place.run("index", env=env).code == 0
    before = files(workspace)
    assert place.run("uninstall", "--yes", env=env).code == 0
    assert files(workspace) == before


def test_an_added_folder_inside_the_state_folder_is_kept(place: Place) -> None:
    added = place.state / "versions" / "vault-0123abcd"
    added.mkdir(parents=True)
    (added / "note.md").write_text("# A note\n", encoding="utf-8")
    assert place.run("add", str(added)).code == 0
    assert place.run("uninstall", "--yes", "--with-memory").code == 0
    assert set(files(added)) == {"note.md"}


def test_files_with_names_like_that_of_an_index_are_kept(place: Place) -> None:
    folder = place.folder / "site"
    (folder / "index.d").mkdir(parents=True)
    mine = ("index.html", "index-backup.zip", "index.d/page.html", "index.sqlite-2025.bak")
    for name in mine:
        (folder / name).write_text("mine", encoding="utf-8")
    place.run("config", "set", "memorySearch.store.path", str(folder / "index"))
    assert place.run("index").code == 0
    assert place.run("uninstall", "--yes").code == 0
    assert set(files(folder)) == set(mine)


def test_a_file_that_is_not_an_index_is_kept(place: Place) -> None:
    notes = place.folder / "notes.sqlite"
    notes.write_text("not an index", encoding="utf-8")
    place.run("config", "set", "memorySearch.store.path", str(notes))
    assert place.run("uninstall", "--yes").code == 0
    assert notes.read_text(encoding="utf-8") == "not an index"


def test_the_current_folder_loses_nothing_if_clawmark_was_never_used_in_it(place: Place) -> None:
    project = place.folder / "project"
    (project / "memory").mkdir(parents=True)
    (project / "memory" / "allocator.c").write_text("int main;", encoding="utf-8")
    env = {"CLAWMARK_WORKSPACE": ""}
    ran = place.run("uninstall", "--yes", "--with-memory", env=env, cwd=project)
    assert ran.code == 0 and "--workspace" in ran.out
    assert set(files(project)) == {"memory/allocator.c"}


def test_an_unsaved_edit_is_kept_without_with_memory(place: Place) -> None:
    copy = place.state / "edits" / "tmpabcd1234" / "MEMORY.md"
    copy.parent.mkdir(parents=True)
    copy.write_text("- an hour of work\n", encoding="utf-8")
    ran = place.run("uninstall", "--yes", env={"COLUMNS": "300"})
    assert "edits that were not saved" in ran.out and copy.exists()


def test_the_key_of_the_web_page_is_removed(place: Place) -> None:
    (place.state / "web-key").write_text("secret\n", encoding="utf-8")
    assert place.run("uninstall", "--yes").code == 0
    assert not place.state.exists()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may do anything")
def test_what_cannot_be_removed_is_said_with_exit_code_3(place: Place) -> None:
    (place.state / "memory").chmod(0o500)
    ran = place.run("uninstall", "--yes")
    assert ran.code == 3 and "Could not be removed" in ran.out


def test_one_that_is_killed_anywhere_is_finished_by_the_next(place: Place, tmp_path: Path) -> None:
    memory, step, killed = files(place.workspace), 0, True
    while killed:
        step += 1 if step < 8 else 7
        ran = subprocess.run(
            [sys.executable, "-c", KILLED, str(step)],
            env=place.environment(),
            cwd=tmp_path,
            capture_output=True,
            check=False,
            timeout=HANG_SECONDS,
        )
        killed = ran.returncode < 0
    assert ran.returncode == 0, ran.stderr
    assert step > 1 and not place.state.exists()
    assert files(place.workspace) == memory
    assert json.loads((place.home / ".claude" / "settings.json").read_text()) == {"theme": "dark"}
    assert set(files(place.home)) == {".claude/settings.json"}
