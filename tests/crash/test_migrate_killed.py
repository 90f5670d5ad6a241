"""A move that is killed at any step is continued by the next one, and nothing is embedded again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clawmark import Memory

# Kills itself in the transaction with the given number, before or after it is committed.
CHILD = """
import os, signal, sys
from contextlib import contextmanager
from clawmark.cli import run
from clawmark.store.postgres.store import PostgresStore
from clawmark.store.sqlite.store import SqliteStore

kind, number, when = sys.argv[1], int(sys.argv[2]), sys.argv[3]
store = PostgresStore if kind == "postgres" else SqliteStore
plain, seen = store.transaction, [0]

@contextmanager
def transaction(self, *, timeout=10.0):
    with plain(self, timeout=timeout) as opened:
        yield opened
        seen[0] += 1
        if seen[0] == number and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
    if seen[0] == number:
        os.kill(os.getpid(), signal.SIGKILL)

store.transaction = transaction
sys.exit(run(sys.argv[4:]))
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "agent" / "memory"
    folder.mkdir(parents=True)
    paragraph = "amber birch cedar delta ember fjord " * 40
    large = "\n\n".join(f"## Part {number}\n\n{paragraph} {number}" for number in range(330))
    (folder / "large.md").write_text(large, encoding="utf-8")
    for number in range(12):
        (folder / f"note-{number}.md").write_text(f"# Note {number}\n\nThe otter, {number}.\n")
    (tmp_path / "state").mkdir()
    write_settings(folder.parent, {"provider": "static"})
    with Memory.open(folder.parent, state_dir=tmp_path / "state", background=False) as memory:
        memory.sync()
    return folder.parent


def write_settings(workspace: Path, search: dict[str, object]) -> None:
    settings = json.dumps({"memorySearch": search})
    (workspace.parent / "state" / "clawmark.json").write_text(settings)


def migrate(
    workspace: Path, kind: str, uri: str, number: int, when: str
) -> subprocess.CompletedProcess[str]:
    """Move the index in a process of its own, which is killed in a transaction of the target."""
    source, target = (
        ("sqlite", "${DATABASE}") if kind == "postgres" else ("${DATABASE}", "new.sqlite")
    )
    words = ["migrate", "--from", source, "--to", target, "--json"]
    places = ["--workspace", str(workspace), "--state-dir", str(workspace.parent / "state")]
    return subprocess.run(
        [sys.executable, "-c", CHILD, kind, str(number), when, *words, *places],
        env={**os.environ, "DATABASE": uri},
        cwd=workspace.parent,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("kind", ["postgres", "sqlite"])
def test_a_killed_move_is_continued(kind: str, workspace: Path, postgres_uri: str) -> None:
    if kind == "sqlite":
        filled = migrate(workspace, "postgres", postgres_uri, 0, "never")
        assert filled.returncode == 0, filled.stderr
    killed = 0
    # Each run gets a little further than the one before it.
    for number in range(1, 40):
        ran = migrate(workspace, kind, postgres_uri, number, ("before", "after")[number % 2])
        if ran.returncode == 0:
            break
        assert ran.returncode == -signal.SIGKILL, ran.stderr
        killed += 1
    report = json.loads(ran.stdout)
    assert killed > 3
    assert report["compared"]["differences"] == []
    assert (report["compared"]["files"], report["compared"]["chunks"]) == (13, 342)
    assert report["compared"]["vectors"] == 342
    new = str(workspace.parent / "new.sqlite")
    store = {"uri": postgres_uri} if kind == "postgres" else {"path": new}
    write_settings(workspace, {"provider": "static", "store": store})
    state = workspace.parent / "state"
    with Memory.open(workspace, state_dir=state, background=False) as memory:
        synced = memory.sync()
        assert (synced.added, synced.updated, synced.embedded) == (0, 0, 0)
        assert memory.search("otter").hits
        assert memory.verify().problems == ()
