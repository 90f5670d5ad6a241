"""No hostile path leads Anthropic's memory tool out of the folder `memory`, in any command."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile import cases, make, needs_maker, remove

pytest.importorskip("anthropic")

from anthropic.lib.tools import ToolError

from clawmark import Memory
from clawmark.adapters.anthropic import MemoryTool

pytestmark = needs_maker


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    folder = make(tmp_path / "tree")
    yield folder
    remove(folder)


def path_of(case: dict[str, Any]) -> str:
    if "input_wtf8_b64" in case:
        return base64.b64decode(case["input_wtf8_b64"]).decode("utf-8", "surrogatepass")
    return (
        str(case["input"])
        if "input" in case
        else base64.b64decode(case["input_b64"]).decode("utf-8", "surrogateescape")
    )


def spellings(path: str) -> set[str]:
    """The path as it is, below /memories, and with /memories in the place of memory."""
    return {
        path,
        f"/memories/{path}",
        "/memories" + path.removeprefix("memory") if path.startswith("memory") else path,
    }


def refused(tool: MemoryTool, **command: object) -> str:
    """The refusal; fails when there is none."""
    with pytest.raises(ToolError) as caught:
        tool.call(command)
    return str(caught.value)


def outside(place: Path) -> dict[str, tuple[int, int]]:
    """Everything that is not below the folder memory, by size and time."""
    memory = place / "workspace" / "memory"
    paths = (path for path in place.rglob("*") if memory != path and memory not in path.parents)
    return {
        str(path): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in paths
        if not path.is_dir()
    }


def test_every_refused_path_is_refused_by_every_command_that_reads_or_changes(
    place: Path, tmp_path: Path
) -> None:
    before = outside(place)
    with Memory.open(place / "workspace", state_dir=tmp_path / "state") as memory:
        tool = MemoryTool(memory)
        for name, case in cases(place, "get_paths").items():
            if case["expect"] != "refused":
                continue
            for path in spellings(path_of(case)):
                if (
                    path.rstrip("/") == "/memories"
                ):  # the folder itself is what this tool is there to show
                    continue
                folder = (
                    memory.workspace.list_folder("memory" + path.removeprefix("/memories"))
                    if _is_folder(path)
                    else None
                )
                said = [] if folder is not None else [refused(tool, command="view", path=path)]
                said += [
                    refused(tool, command="str_replace", path=path, old_str="a", new_str="b"),
                    refused(tool, command="insert", path=path, insert_line=0, insert_text="x"),
                    refused(tool, command="rename", old_path=path, new_path="/invalid/x.md"),
                ]
                if folder is None:
                    said.append(refused(tool, command="delete", path=path))
                assert all(len(one) < 1000 for one in said), name
    assert outside(place) == before


def _is_folder(path: str) -> bool:
    return path == "/memories/special/folder.md"


def test_creating_and_renaming_stay_in_the_folder_memory(place: Path, tmp_path: Path) -> None:
    before = outside(place)
    with Memory.open(place / "workspace", state_dir=tmp_path / "state") as memory:
        tool = MemoryTool(memory)
        for case in cases(place, "get_paths").values():
            for path in spellings(path_of(case)):
                for command in (
                    {"command": "create", "path": path, "file_text": "made"},
                    {"command": "rename", "old_path": "/memories/2026-02-24.md", "new_path": path},
                    {"command": "rename", "old_path": path, "new_path": "/memories/2026-02-24.md"},
                ):
                    try:
                        tool.call(command)
                    except ToolError as error:
                        assert "Traceback" not in str(error)
    assert outside(place) == before


def test_a_path_with_a_step_back_a_backslash_or_a_control_character_makes_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / "agent" / "memory").mkdir(parents=True)
    with Memory.open(tmp_path / "agent", state_dir=tmp_path / "state") as memory:
        tool = MemoryTool(memory)
        for name in (
            "../x.md",
            "a/../../x.md",
            "..\\x.md",
            "a\\b.md",
            "..;/x.md",
            "....//x.md",
            "a\nb.md",
            "a\0.md",
            "a/./b.md",
        ):
            assert refused(tool, command="create", path=f"/memories/{name}", file_text="x"), name
    assert [
        str(path.relative_to(tmp_path / "agent")) for path in (tmp_path / "agent").rglob("*")
    ] == ["memory"]
