"""The `Workspace` object."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from clawmark.model.errors import PathDenied, WorkspaceError
from clawmark.workspace import Workspace


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    (tmp_path / "ws" / "memory").mkdir(parents=True)
    (tmp_path / "ws" / "memory" / "a.md").write_text("alpha\n")
    return tmp_path / "ws"


def test_a_workspace_is_a_context_manager_and_reports_its_containment(ws: Path) -> None:
    with Workspace(str(ws)) as workspace:
        assert workspace.containment == "descriptor"
        assert workspace.read_lines("memory/a.md").text == "alpha"


def test_refused_paths_are_counted(ws: Path) -> None:
    workspace = Workspace(str(ws))
    for path in ("../x.md", "AGENTS.md", "memory/a.txt"):
        with pytest.raises(PathDenied):
            workspace.read_lines(path)
    with pytest.raises(PathDenied):
        workspace.append("../x.md", "x")
    workspace.read_lines("memory/none.md")
    assert workspace.denied == 4


def test_a_workspace_reached_by_a_link_is_used_by_its_real_path(ws: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(ws)
    workspace = Workspace(str(tmp_path / "alias"))
    assert workspace.root == str(ws)
    for path in ("memory/a.md", f"{ws}/memory/a.md", f"{tmp_path}/alias/memory/a.md"):
        assert workspace.read_lines(path).path == "memory/a.md"


def test_a_missing_workspace_says_how_to_make_one(tmp_path: Path) -> None:
    workspace = Workspace(str(tmp_path / "none"))
    with pytest.raises(
        WorkspaceError, match="cannot be opened: no such file or directory"
    ) as caught:
        workspace.read_lines("memory/a.md")
    assert caught.value.hint == f"Run clawmark init {tmp_path}/none."


def test_an_extra_path_can_be_read_as_soon_as_it_exists(ws: Path, tmp_path: Path) -> None:
    workspace = Workspace(str(ws), ["../docs"])
    with pytest.raises(PathDenied):
        workspace.read_lines("../docs/x.md")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "x.md").write_text("docs\n")
    assert workspace.read_lines("../docs/x.md").text == "docs"
    state = workspace.scan().files[0]
    assert workspace.read_document(state).text == "docs\n"


def test_an_absent_file_of_an_extra_path_is_empty(ws: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    excerpt = Workspace(str(ws), ["../docs"]).read_lines("../docs/none.md")
    assert (excerpt.path, excerpt.total_lines) == ("../docs/none.md", 0)


def test_hard_linked_files_are_known(ws: Path, tmp_path: Path) -> None:
    os.link(ws / "memory" / "a.md", tmp_path / "twin.md")
    workspace = Workspace(str(ws))
    assert workspace.hard_linked(workspace.scan()) == ["memory/a.md"]


def test_many_threads_may_read_at_once(ws: Path) -> None:
    workspace = Workspace(str(ws))
    failures: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(100):
                assert workspace.read_lines("memory/a.md").text == "alpha"
                assert len(workspace.scan().files) == 1
                with pytest.raises(PathDenied):
                    workspace.read_lines("../x.md")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert workspace.denied == 400


def test_importing_it_loads_nothing_a_search_does_not_need() -> None:
    script = (
        "import sys, typing; before = set(sys.modules); import clawmark.workspace;"
        "print(*sorted({m.partition('.')[0] for m in set(sys.modules) - before}))"
    )
    loaded = subprocess.run(
        [sys.executable, "-S", "-c", script], capture_output=True, text=True, env=_with_source()
    )
    unwanted = {
        "pathlib",
        "tempfile",
        "shutil",
        "hashlib",
        "json",
        "fcntl",
        "subprocess",
        "logging",
        "datetime",
    }
    assert loaded.returncode == 0, loaded.stderr
    assert unwanted.isdisjoint(loaded.stdout.split())


def _with_source() -> dict[str, str]:
    import clawmark

    return {**os.environ, "PYTHONPATH": str(Path(next(iter(clawmark.__path__))).parent)}


def test_only_files_that_match_the_pattern_of_an_extra_path_are_listed(tmp_path: Path) -> None:
    root, wiki = tmp_path / "agent", tmp_path / "wiki"
    for file in (
        root / "MEMORY.md",
        root / "docs/a.md",
        root / "docs/in/b.md",
        wiki / "c.md",
        wiki / "public/d.md",
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{file.name}\n")
    patterns = {"docs/in": ("none/*.md",), str(wiki): ("public/**",)}
    with Workspace(str(root), ["docs", *patterns], extra_patterns=patterns) as workspace:
        # What another extra path holds whole is not lost to the pattern of one inside it.
        assert [state.path for state in workspace.scan().files] == [
            "../wiki/public/d.md",
            "MEMORY.md",
            "docs/a.md",
            "docs/in/b.md",
        ]
        assert workspace.read_lines("../wiki/public/d.md").text == "d.md"
        with pytest.raises(PathDenied):
            workspace.read_lines("../wiki/c.md")
