"""A process that is killed while it indexes a transcript leaves it indexed up to some line; the
next one goes on there.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.engine.sync.transcript_progress import UNFINISHED

SETTINGS: dict[str, object] = {
    "memorySearch.sources": ["memory", "sessions"],
    "memorySearch.provider": "none",
}
CHILD = """
import sys
from clawmark import Memory
settings = {"memorySearch.sources": ["memory", "sessions"], "memorySearch.provider": "none"}
with Memory.open(
    sys.argv[1], state_dir=sys.argv[2], overrides=settings, background=False
) as memory:
    memory.sync(force=sys.argv[3] == "force")
"""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state" / "agents" / "main" / "sessions"
    folder.mkdir(parents=True)
    (tmp_path / "agent").mkdir()
    with (folder / "s.jsonl").open("w", encoding="utf-8") as file:
        for number in range(1600):
            text = f"message {number} " + "amber birch cedar delta ember fjord " * (
                40 if number % 400 else 3000
            )
            message = {"role": "user" if number % 2 else "assistant", "content": text}
            file.write(
                json.dumps(
                    {"type": "message", "timestamp": "2026-02-24T10:00:00Z", "message": message}
                )
                + "\n"
            )
    return tmp_path / "state"


def opened(state: Path) -> Memory:
    return Memory.open(
        state.parent / "agent", state_dir=state, overrides=SETTINGS, background=False
    )


def progress(memory: Memory, *, building: bool) -> str:
    with memory._builtin.parts.store.snapshot() as reader:
        row = (reader.files(which="rebuilt") if building else reader.files()).get(
            "sessions/s.jsonl"
        )
    return row.progress if row is not None and row.size == UNFINISHED else ""


@pytest.mark.parametrize("how", ["new", "force"])
def test_a_killed_sync_is_gone_on_with_and_nothing_is_lost_or_doubled(
    how: str, state: Path
) -> None:
    if how == "force":
        with opened(state) as memory:
            memory.sync()
    killed = 0
    for round_number in range(3):
        with opened(state) as memory:
            command = [sys.executable, "-c", CHILD, str(state.parent / "agent"), str(state), how]
            child = subprocess.Popen(command)
            seen = {progress(memory, building=how == "force")}
            # Killed in the middle of a transaction, a few after the first that was seen.
            while child.poll() is None and len(seen) < 3 + 2 * round_number:
                seen.add(progress(memory, building=how == "force"))
            child.send_signal(signal.SIGKILL)
            killed += child.wait() == -signal.SIGKILL
            if how == "new":
                assert memory.plan()[0].due == 1
            else:
                assert memory.search("message 1599 amber", freshen=False).hits
    assert killed == 3
    with opened(state) as memory:
        report = memory.sync()
        assert (report.due_files, report.failures) == (0, ())
        assert memory.plan()[0].due == 0
        assert memory.verify().problems == ()
        assert memory.search("message 1599 amber").hits
