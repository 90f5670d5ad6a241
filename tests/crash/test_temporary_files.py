"""Temporary files of writers that were killed are removed; those of living writers are not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.model.errors import WorkspaceError
from clawmark.workspace import Workspace

NOTE = "memory/note.md"

# Replaces the note, and stops right before the new text is renamed over the old one: for ever, or
# until it is told to go on.
CHILD = """
import hashlib, os, sys
from clawmark import Memory
real = os.replace
def stop_before_rename(*arguments, **named):
    if str(arguments[0]).startswith(".clawmark-"):
        os.write(1, b"ready\\n")
        sys.stdin.readline()
    return real(*arguments, **named)
os.replace = stop_before_rename
with Memory.open(sys.argv[1], state_dir=sys.argv[2], provider="none") as memory:
    text = open(sys.argv[1] + "/" + sys.argv[3], "rb").read()
    memory.replace(sys.argv[3], "new text\\n", hashlib.sha256(text).hexdigest())
"""


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    (folder / "memory" / "inner").mkdir(parents=True)
    for path in ("MEMORY.md", NOTE, "memory/inner/note.md"):
        (folder / path).write_text("old text\n")
    return folder


def temporary_files(ws: Path) -> list[str]:
    return sorted(str(path.relative_to(ws)) for path in ws.rglob(".clawmark-*.tmp"))


def start_writer(ws: Path, path: str = NOTE, state: str = "state") -> subprocess.Popen[str]:
    """A process that is about to rename its temporary file."""
    command = [sys.executable, "-c", CHILD, str(ws), str(ws.parent / state), path]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def kill_writer(ws: Path, path: str = NOTE) -> None:
    with start_writer(ws, path) as child:
        child.kill()
    assert child.returncode == -signal.SIGKILL
    assert (ws / path).read_text() == "old text\n"


def opened(ws: Path) -> Memory:
    return Memory.open(ws, state_dir=ws.parent / "state", provider="none", background=False)


def test_the_next_append_to_another_file_removes_what_a_killed_writer_left(ws: Path) -> None:
    kill_writer(ws)
    assert len(temporary_files(ws)) == 1
    with opened(ws) as memory:
        memory.append("Something else")
    assert temporary_files(ws) == []


def test_the_next_replace_of_another_file_removes_what_a_killed_writer_left(ws: Path) -> None:
    kill_writer(ws)
    Workspace(str(ws)).replace("memory/other.md", "other\n", "")
    assert temporary_files(ws) == []


@pytest.mark.parametrize("path", ["MEMORY.md", NOTE, "memory/inner/note.md"])
def test_an_index_removes_what_a_killed_writer_left(ws: Path, path: str) -> None:
    kill_writer(ws, path)
    assert len(temporary_files(ws)) == 1
    with opened(ws) as memory:
        memory.sync()
    assert temporary_files(ws) == []


def test_an_index_removes_more_leftovers_than_a_write_looks_for(ws: Path) -> None:
    for number in range(40):
        (ws / "memory" / f".clawmark-{number}.tmp").write_text("half of a te")
    (ws / "memory" / ".clawmark-0123456789abcdef.tmp").write_text("from an earlier version")
    with opened(ws) as memory:
        memory.sync()
    assert temporary_files(ws) == []


def test_a_folder_with_the_leftover_of_a_killed_writer_can_be_deleted(ws: Path) -> None:
    kill_writer(ws, "memory/inner/note.md")
    assert Workspace(str(ws)).delete("memory/inner")
    assert not (ws / "memory" / "inner").exists()


@pytest.mark.parametrize("state", ["state", "another state"])
def test_a_living_writer_keeps_its_file_and_finishes(ws: Path, state: str) -> None:
    """Also one that uses another state folder, and so another lock."""
    with start_writer(ws, state=state) as child:
        (temporary,) = temporary_files(ws)
        with opened(ws) as memory:
            memory.append("Something else")
            memory.sync()
        Workspace(str(ws), lock_dir=str(ws.parent / "locks")).replace(
            "memory/other.md", "other\n", ""
        )
        assert temporary_files(ws) == [temporary]
        child.communicate("go on\n")
    assert child.returncode == 0
    assert (ws / NOTE).read_text() == "new text\n"
    assert temporary_files(ws) == []


def test_what_only_has_the_name_of_a_temporary_file_is_not_deleted(ws: Path) -> None:
    (ws / "memory" / ".clawmark-0.tmp").mkdir()
    (ws / "memory" / ".clawmark-1.tmp").symlink_to(ws / NOTE)
    os.mkfifo(ws / "memory" / ".clawmark-2.tmp")
    with opened(ws) as memory:
        memory.append("Something else")
        memory.sync()
    Workspace(str(ws)).replace("memory/other.md", "other\n", "")
    assert len(temporary_files(ws)) == 3
    assert (ws / "memory" / "other.md").read_text() == "other\n"


def test_a_failed_write_removes_its_own_temporary_file(
    ws: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch, pytest.raises(WorkspaceError, match="input/output error"):
        patch.setattr(os, "replace", fail)
        Workspace(str(ws)).replace("memory/other.md", "other\n", "")
    assert temporary_files(ws) == []
