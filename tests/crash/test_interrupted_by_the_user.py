"""Ctrl-C inside a forget or a restore: the next command finishes it or it has not happened."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.agent.forget.run import STEPS

OLD, NEW = "# Facts\n\n- old\n", "# Facts\n\n- new\n"
CHILD = """
import os, signal, sys
from clawmark import cli
from clawmark.agent.forget import run

target, limit = sys.argv[1], int(sys.argv[2])
calls = []

def interrupting(whole):
    def call(*arguments, **more):
        if len(calls) == limit:
            os.kill(os.getpid(), signal.SIGINT)
        calls.append(1)
        return whole(*arguments, **more)
    return call

if target == "steps":
    run.STEPS = tuple(map(interrupting, run.STEPS))
else:
    os.replace = interrupting(os.replace)
sys.exit(cli.main(sys.argv[3:]))
"""


def clawmark(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return _run(folder, [sys.executable, "-m", "clawmark"], words)


def interrupted(
    folder: Path, target: str, number: int, *words: str
) -> subprocess.CompletedProcess[str]:
    """Run a command that gets SIGINT before a step or a replacement of a file."""
    return _run(folder, [sys.executable, "-c", CHILD, target, str(number)], words)


def _run(
    folder: Path, command: list[str], words: tuple[str, ...]
) -> subprocess.CompletedProcess[str]:
    places = ["-w", str(folder / "ws"), "--state-dir", str(folder / "state")]
    return subprocess.run([*command, *places, *words], capture_output=True, text=True, check=False)


def open_memory(folder: Path) -> Memory:
    return Memory.open(folder / "ws", state_dir=folder / "state", provider="none", background=False)


@pytest.mark.parametrize("number", range(len(STEPS)))
def test_a_forget_that_is_interrupted_is_finished_by_the_next_command(
    tmp_path: Path, number: int
) -> None:
    (tmp_path / "ws" / "memory").mkdir(parents=True)
    with open_memory(tmp_path) as memory:
        memory.append("The garage code is 4711")
        memory.append("Carla prefers tea")
        memory.sync()
    ended = interrupted(tmp_path, "steps", number, "forget", "garage code", "--yes")
    assert ended.returncode == 130
    assert "Traceback" not in ended.stderr and ended.stderr.count("\n") == 1
    done = clawmark(tmp_path, "index")
    assert done.returncode == 0
    assert done.stderr.count("An interrupted forget was finished.") == 1
    assert "Traceback" not in done.stderr
    files = [one for one in tmp_path.rglob("*") if one.is_file()]
    assert not any(b"4711" in one.read_bytes() for one in files)
    assert any(b"Carla prefers tea" in one.read_bytes() for one in files)
    assert "forget" not in clawmark(tmp_path, "index", "--quiet").stderr, "it is said once"


def test_a_restore_that_is_interrupted_has_happened_or_not_and_can_be_repeated(
    tmp_path: Path,
) -> None:
    (tmp_path / "ws" / "memory").mkdir(parents=True)
    page = tmp_path / "ws" / "MEMORY.md"
    with open_memory(tmp_path) as memory:
        for text in (OLD, NEW):
            page.write_text(text, "utf-8")
            memory.sync()
        oldest = list(memory.history.versions())[-1].version.id
    number = 0
    words = ("restore", f"MEMORY.md@{oldest[:8]}", "--yes")
    while (ended := interrupted(tmp_path, "replace", number, *words)).returncode:
        assert ended.returncode == 130, ended.stderr
        assert "Traceback" not in ended.stderr
        assert page.read_text("utf-8") in (OLD, NEW)
        number += 1
        assert clawmark(tmp_path, *words).returncode == 0
        assert page.read_text("utf-8") == OLD
        page.write_text(NEW, "utf-8")
        assert clawmark(tmp_path, "index").returncode == 0
    assert number > 0, "a restore replaces files"
    assert page.read_text("utf-8") == OLD
