"""A process that is killed while it stores a large file does not make the next one wait."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.store.sqlite.schema import STAGED
from clawmark.store.sqlite.snapshot import SqliteSnapshot

SETTINGS: dict[str, object] = {"memorySearch.provider": "none"}
CHILD = """
import sys
from clawmark import Memory
settings = {"memorySearch.provider": "none"}
with Memory.open(
    sys.argv[1], state_dir=sys.argv[2], overrides=settings, background=False
) as memory:
    memory.sync(force=sys.argv[3] == "force")
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "agent" / "memory"
    folder.mkdir(parents=True)
    paragraph = "amber birch cedar delta ember fjord " * 40
    text = "\n\n".join(f"## Part {number}\n\n{paragraph}" for number in range(2500))
    (folder / "large.md").write_text(text, encoding="utf-8")
    return folder.parent


def opened(workspace: Path) -> Memory:
    return Memory.open(
        workspace, state_dir=workspace.parent / "state", overrides=SETTINGS, background=False
    )


def staged_chunks(memory: Memory) -> int:
    with memory._builtin.parts.store.snapshot() as reader:
        assert isinstance(reader, SqliteSnapshot)
        rows = reader.db.rows(
            "SELECT count(*) FROM chunks JOIN files f ON f.key = file WHERE f.died = ?", (STAGED,)
        )
    return int(rows[0][0])


def kill_while_staging(workspace: Path, how: str) -> None:
    command = [sys.executable, "-c", CHILD, str(workspace), str(workspace.parent / "state"), how]
    with opened(workspace) as memory:
        child = subprocess.Popen(command)
        while child.poll() is None and staged_chunks(memory) == 0:
            continue
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
        assert staged_chunks(memory) > 0


@pytest.mark.parametrize("how", ["new", "force"])
def test_index_after_a_killed_index_does_not_wait_for_the_dead_process(
    how: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "force":
        with opened(workspace) as memory:
            memory.sync()
    kill_while_staging(workspace, how)

    def refuse(seconds: float) -> None:
        pytest.fail(f"waited {seconds} s for a process that is dead")

    monkeypatch.setattr("clawmark.store.sqlite.upkeep.staging.time.sleep", refuse)
    with opened(workspace) as memory:
        report = memory.sync()
        assert (report.failures, report.due_files) == ((), 0)
        assert staged_chunks(memory) == 0
        assert memory.search("Part 2499").hits
        assert memory.verify().problems == ()


def test_index_waits_while_a_living_process_stores_a_large_file(workspace: Path) -> None:
    command = [sys.executable, "-c", CHILD, str(workspace), str(workspace.parent / "state"), "new"]
    with opened(workspace) as memory:
        child = subprocess.Popen(command)
        while child.poll() is None and staged_chunks(memory) == 0:
            continue
        report = memory.sync()
        assert child.wait() == 0
        assert (report.failures, report.due_files) == ((), 0)
        assert memory.verify().problems == ()
