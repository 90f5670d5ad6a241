"""While a watcher reports changes, a search of a memory whose files take long to list does not list
them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from work_counter import counting

from clawmark import Memory
from clawmark.backends import freshening

LONG = 60.0
"""A test that has to wait this long has failed."""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace in a process to which every look at the disk is expensive."""
    monkeypatch.setattr(freshening, "EXPENSIVE_LOOK_SECONDS", 0.0)
    (tmp_path / "agent" / "memory").mkdir(parents=True)
    (tmp_path / "agent" / "memory" / "a.md").write_text("The heron is the mascot.\n")
    return tmp_path / "agent"


def test_a_search_looks_at_the_disk_again_only_after_a_change(workspace: Path) -> None:
    with (
        counting() as counter,
        Memory.open(
            workspace,
            state_dir=workspace.parent / "state",
            overrides={"memorySearch.provider": "none", "memory.history.enabled": False},
            background=True,
        ) as memory,
        memory.watch(files=True) as watching,
    ):
        assert not watching.polls_because
        assert watching.wait_quiet(LONG)
        freshener = memory._builtin.freshener
        until = time.monotonic() + LONG
        while not freshener._is_quiet():
            assert time.monotonic() < until
            memory.search("heron")
        # Without a watcher, the last look would be too old by then.
        freshener.clock = lambda: time.monotonic() + freshening.WATCHED_SECONDS / 2
        counter.take()
        assert memory.search("heron").due_files == 0
        assert counter.take().folders_listed == 0
        (workspace / "memory" / "b.md").write_text("The otter is the other mascot.\n")
        while not memory.search("otter").hits:
            assert time.monotonic() < until
