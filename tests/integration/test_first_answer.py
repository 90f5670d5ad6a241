"""The first search of a large memory answers from the newest files, and says what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.backends import freshening
from clawmark.engine.sync.text import FILES_AT_ONCE

FILES = 400


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace that counts as large, in a process without time to index it."""
    monkeypatch.setattr(freshening, "LARGE_MEMORY_FILES", FILES // 2)
    monkeypatch.setattr(freshening, "FIRST_ANSWER_SECONDS", 0.0)
    monkeypatch.setattr(freshening, "FIRST_INDEXING_SECONDS", 0.0)
    folder = tmp_path / "workspace"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("The heron is the project's mascot.\n")
    for number in range(FILES):
        day = f"{2000 + number // 28}-02-{number % 28 + 1:02d}"
        (folder / "memory" / f"{day}.md").write_text(f"The heron was seen, visit {number}.\n")
    return folder


def open_memory(workspace: Path, *, background: bool) -> Memory:
    return Memory.open(
        workspace,
        state_dir=workspace.parent / "state",
        overrides={"memorySearch.provider": "none"},
        background=background,
    )


def test_the_first_search_answers_from_memory_and_the_newest_days(workspace: Path) -> None:
    with open_memory(workspace, background=False) as memory:
        found = memory.search("heron mascot")
        assert found.hits[0].path == "MEMORY.md"
        assert found.due_files == FILES + 1 - FILES_AT_ONCE
        assert found.degraded is not None
        assert f"it has {FILES_AT_ONCE} files, the newest first" in found.degraded.reason
        assert found.degraded.fix == "`clawmark index` indexes the rest."
        newest = memory.search(f"visit {FILES - 1}")
        assert newest.hits[0].path == max(
            f"memory/{file.name}" for file in (workspace / "memory").iterdir()
        )
        memory.sync()
        found = memory.search("heron mascot")
        assert (found.due_files, found.degraded) == (0, None)


def test_the_rest_is_indexed_in_the_background(workspace: Path) -> None:
    with open_memory(workspace, background=True) as memory:
        found = memory.search("heron mascot")
        assert found.hits[0].path == "MEMORY.md"
        assert found.degraded is not None
        assert found.degraded.fix == "They are being indexed in the background."
        with memory.watch(files=False) as watching:
            assert watching.wait_quiet(60)
        assert memory.search("visit 0").hits
        assert memory.status().due_files == 0
