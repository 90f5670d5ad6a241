"""While one process indexes, others can see that it does, and how far it is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.cli.commands.status import status_facts

CHILD = """
import sys
from clawmark import Memory

def wait(progress):
    print("at work", flush=True)
    sys.stdin.readline()

settings = {"memorySearch.provider": "none"}
with Memory.open(
    sys.argv[1], state_dir=sys.argv[2], overrides=settings, background=False
) as memory:
    memory.sync(progress=wait)
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "agent" / "memory"
    folder.mkdir(parents=True)
    for number in range(200):
        (folder / f"{number}.md").write_text(
            f"The zebra number {number} is striped.\n", encoding="utf-8"
        )
    return folder.parent


def opened(workspace: Path) -> Memory:
    settings: dict[str, object] = {"memorySearch.provider": "none"}
    return Memory.open(
        workspace, state_dir=workspace.parent / "state", overrides=settings, background=False
    )


@pytest.fixture
def child(workspace: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has indexed some files and waits for a line before it goes on."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(workspace), str(workspace.parent / "state")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdin is not None
    assert process.stdout.readline() == "at work\n"
    yield process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def page(memory: Memory) -> dict[str, str]:
    return dict(status_facts(memory.status(), memory.places, ()))


def test_status_reports_an_index_that_another_process_is_making(
    workspace: Path, child: subprocess.Popen[str]
) -> None:
    with opened(workspace) as memory:
        running = memory.status().running
        assert (running["pid"], running["reason"], running["stage"]) == (
            child.pid,
            "manual",
            "text",
        )
        assert 0 < int(str(running["done"])) < int(str(running["total"])) == 200
        shown = page(memory)
        assert (
            f"process {child.pid}" in shown["Running"]
            and f"{running['done']} of 200 files" in shown["Running"]
        )
        assert shown["Last sync"] == "none finished yet"


def test_status_of_a_sync_that_was_killed_or_has_ended_says_nothing_of_it(
    workspace: Path, child: subprocess.Popen[str]
) -> None:
    child.send_signal(signal.SIGKILL)
    child.wait()
    with opened(workspace) as memory:
        assert memory.status().running == {}
        assert page(memory)["Last sync"] == "never"
        memory.sync()
        assert memory.status().running == {}
        assert "manual" in page(memory)["Last sync"]


def test_a_running_sync_is_reported_to_its_own_process_too(workspace: Path) -> None:
    with opened(workspace) as memory:
        seen = []
        memory.sync(progress=lambda _: seen.append(memory.status().running["pid"]))
        assert set(seen) == {os.getpid()}
