"""I-17: something is due exactly when the disk is not what the index says, in every process alike;
quiet stays quiet.

Rounds of random edits. After each edit, and after each sync, several processes are asked how many
files are due: the one that syncs, one that has a memory of its own open, and now and then a new
command. What the answer should be is worked out without Clawmark: from the bytes and times of the
files now and at the last sync."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path

from frame import Outcome
from notebook import Notebook, opened
from straced import environment, python

ASKED = """\
import sys
from clawmark import Memory
memory = Memory.open(
    sys.argv[1],
    state_dir=sys.argv[2],
    config=sys.argv[2] + "/clawmark.json",
    background=False,
)
for line in sys.stdin:
    print(memory.status().due_files, flush=True)
"""
COMMAND_EVERY = 25


def run(work: Path, full: bool, seed: int) -> Outcome:
    rounds, files = (500, 200) if full else (40, 40)
    rng = random.Random(seed)
    notebook = Notebook(work, files, rng)
    state = work / "state"
    state.mkdir()
    (state / "clawmark.json").write_text('{ memorySearch: { provider: "none" } }')
    other = subprocess.Popen(
        [*python("-c", ASKED), str(notebook.root), str(state)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
        text=True,
    )
    complaints: list[str] = []
    asked = dirty = 0
    try:
        with opened(notebook.root, state) as memory:
            memory.sync()
            indexed = _disk(notebook.root)
            for number in range(rounds):
                what = [notebook.edit() for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 5)))]
                if rng.random() < 0.1:
                    notebook.touch()
                    what.append("touch")
                is_dirty = _disk(notebook.root) != indexed
                dirty += is_dirty
                answers = [memory.plan()[0].due, _ask(other)]
                if number % COMMAND_EVERY == 0:
                    answers.append(_command(notebook.root, state))
                if {bool(answer) for answer in answers} != {is_dirty} or len(set(answers)) != 1:
                    complaints.append(
                        f"round {number + 1} ({', '.join(what)}): due {answers}, dirty {is_dirty}"
                    )
                asked += len(answers)
                if rng.random() < 0.7:
                    memory.sync()
                    indexed = _disk(notebook.root)
                    answers = [memory.plan()[0].due, _ask(other), memory.plan()[0].due]
                    if any(answers):
                        complaints.append(f"round {number + 1}: due {answers} after a sync")
                    asked += len(answers)
    finally:
        other.kill()
        other.communicate()
    facts: dict[str, object] = {
        "rounds": rounds,
        "files": files,
        "answers": asked,
        "rounds_with_something_due": dirty,
    }
    return Outcome(asked - len(complaints), len(complaints), facts, tuple(complaints))


def _disk(root: Path) -> dict[str, tuple[bytes, int, int]]:
    """What is on disk, found out by other means than Clawmark's."""
    found = {}
    for folder, _, names in os.walk(root / "memory"):
        for name in names:
            path = Path(folder, name)
            if name.endswith(".md") and not name.startswith("._"):
                info = path.lstat()
                found[str(path)] = (path.read_bytes(), info.st_ctime_ns, info.st_ino)
    return found


def _ask(other: subprocess.Popen[str]) -> int:
    assert other.stdin is not None and other.stdout is not None
    other.stdin.write("\n")
    other.stdin.flush()
    return int(other.stdout.readline())


def _command(root: Path, state: Path) -> int:
    words = (
        "-m",
        "clawmark",
        "status",
        "--json",
        "--workspace",
        str(root),
        "--state-dir",
        str(state),
    )
    ran = subprocess.run(python(*words), capture_output=True, env=environment(), check=True)
    due: int = json.loads(ran.stdout)["dueFiles"]
    return due
