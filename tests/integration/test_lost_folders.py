"""A folder that cannot be looked into, or is suddenly empty, is told with every answer and costs no
memory.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from clawmark.memory import Memory
from clawmark.testing import HashingEmbedder


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    (tmp_path / "ws" / "memory").mkdir(parents=True)
    (tmp_path / "ws" / "memory" / "a.md").write_text(
        "The ferry leaves at seven.\n", encoding="utf-8"
    )
    return tmp_path / "ws"


def opened(ws: Path) -> Memory:
    return Memory.open(ws, state_dir=ws.parent / "state", embedder=HashingEmbedder())


def paths(memory: Memory) -> list[str]:
    return [hit.path for hit in memory.search("ferry").hits]


def test_a_search_says_that_a_folder_cannot_be_looked_into(ws: Path) -> None:
    with opened(ws) as memory:
        memory.sync()
    (ws / "memory").rename(ws / "moved")
    (ws / "memory").symlink_to(ws / "moved")
    with opened(ws) as memory:
        found = memory.search("ferry")
        assert [hit.path for hit in found.hits] == ["memory/a.md"]
        assert found.degraded is not None
        assert found.degraded.reason.startswith("memory could not be listed: a link")


def test_a_memory_that_cannot_be_looked_into_is_not_called_empty(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "memory").touch()
    with opened(tmp_path / "ws") as memory:
        found = memory.search("ferry")
    assert found.nothing is not None
    assert found.nothing.code == "still-indexing"
    assert found.nothing.message == "memory could not be listed: a file, not a folder."


@pytest.mark.parametrize("lost", ["", "memory"])
def test_a_folder_replaced_by_an_empty_one_is_forgotten_only_on_request(
    ws: Path, tmp_path: Path, lost: str
) -> None:
    with opened(ws) as memory:
        memory.sync()
    (ws / lost).rename(tmp_path / "old")
    (ws / lost).mkdir()
    for _ in range(2):
        with opened(ws) as memory:
            report = memory.sync()
            assert (report.deleted, [failure.path for failure in report.scan_failures]) == (
                0,
                [lost],
            )
            assert paths(memory) == ["memory/a.md"]
    with opened(ws) as memory:
        assert memory.sync(force=True).deleted == 1
        assert (paths(memory), memory.sync().scan_failures, memory.status().scan_failures) == (
            [],
            (),
            (),
        )


def test_a_folder_that_comes_back_with_other_notes_is_believed(ws: Path, tmp_path: Path) -> None:
    with opened(ws) as memory:
        memory.sync()
    ws.rename(tmp_path / "old")
    (ws / "memory").mkdir(parents=True)
    (ws / "memory" / "b.md").write_text("The ferry leaves at eight.\n", encoding="utf-8")
    with opened(ws) as memory:
        report = memory.sync()
        assert (report.added, report.deleted, report.scan_failures) == (1, 1, ())
        assert paths(memory) == ["memory/b.md"]


def test_an_emptied_folder_is_believed(ws: Path) -> None:
    with opened(ws) as memory:
        memory.sync()
        (ws / "memory" / "a.md").unlink()
        report = memory.sync()
    assert (report.deleted, report.scan_failures) == (1, ())


def test_an_extra_path_that_is_gone_keeps_its_notes_as_long_as_it_is_configured(
    ws: Path, tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "d.md").write_text("The ferry has a bar.\n", encoding="utf-8")
    extra = {"memorySearch.extraPaths": ["../docs"]}
    state = tmp_path / "state"
    with Memory.open(ws, state_dir=state, embedder=HashingEmbedder(), overrides=extra) as memory:
        memory.sync()
        docs.rename(tmp_path / "unplugged")
        assert [failure.path for failure in memory.sync().scan_failures] == ["../docs"]
        assert sorted(paths(memory)) == ["../docs/d.md", "memory/a.md"]
    with opened(ws) as memory:
        assert (memory.sync().deleted, paths(memory)) == (1, ["memory/a.md"])
