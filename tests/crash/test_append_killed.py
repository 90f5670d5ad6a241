"""An acknowledged append survives the death of its writer: present, whole, once."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
from pathlib import Path

import clawmark
from clawmark.workspace import Workspace

LOG = "memory/2026-02-24.md"
ROUNDS = 25
WRITERS = 2

WRITER = """
import os, sys
from clawmark.workspace import Workspace
root, locks, writer = sys.argv[1:]
workspace = Workspace(root, lock_dir=locks)
for number in range(1_000_000):
    line = f"- {writer}:{number} " + "x" * (number % 97) + " end"
    written = workspace.append("memory/2026-02-24.md", line, header="# 2026-02-24\\n\\n")
    os.write(1, f"{written.start_line} {line}\\n".encode())
"""


def start(root: Path, locks: Path, writer: str) -> subprocess.Popen[bytes]:
    source = str(Path(next(iter(clawmark.__path__))).parent)
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root), str(locks), writer],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": source},
    )


def kill_at_a_random_moment(writer: subprocess.Popen[bytes], chance: random.Random) -> list[str]:
    """Let it acknowledge a few lines, kill it somewhere in the middle of the next; the lines it acknowledged."""
    assert writer.stdout is not None
    pipe = writer.stdout.fileno()
    heard = b""
    for _ in range(chance.randrange(1, 8)):
        heard += os.read(pipe, 65536)
    select.select([], [], [], chance.random() / 200)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    while block := os.read(pipe, 65536):
        heard += block
    writer.stdout.close()
    return heard.decode().split("\n")[:-1]


def test_acknowledged_lines_survive_sigkill(tmp_path: Path) -> None:
    chance = random.Random(20260224)
    root, locks = tmp_path / "ws", tmp_path / "locks"
    root.mkdir()
    acknowledged: list[str] = []
    for turn in range(ROUNDS):
        writers = [start(root, locks, f"{turn}.{n}") for n in range(WRITERS)]
        for writer in writers:
            acknowledged += kill_at_a_random_moment(writer, chance)
    lines = (root / LOG).read_text().split("\n")
    assert lines[:2] == ["# 2026-02-24", ""]
    assert len(acknowledged) >= ROUNDS * WRITERS
    for entry in acknowledged:
        number, line = entry.split(" ", 1)
        assert lines[int(number) - 1] == line, "at the line it was cited with"
        assert lines.count(line) == 1


def test_a_log_goes_on_after_its_writer_died(tmp_path: Path) -> None:
    root, locks = tmp_path / "ws", tmp_path / "locks"
    root.mkdir()
    kill_at_a_random_moment(start(root, locks, "dead"), random.Random(1))
    workspace = Workspace(str(root), lock_dir=str(locks))
    written = workspace.remember("still here", "2026-02-24")
    assert workspace.read_lines(written.citation).text == "- still here"
