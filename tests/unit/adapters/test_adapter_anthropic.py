"""Anthropic's memory tool: each command answers as the SDK's own file tool does, to the letter."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("anthropic")

from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool

from clawmark import Memory
from clawmark.adapters.anthropic import AsyncMemoryTool, MemoryTool

Command = dict[str, Any]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    (tmp_path / "agent" / "memory").mkdir(parents=True)
    with Memory.open(tmp_path / "agent", state_dir=tmp_path / "state") as opened:
        yield opened


@pytest.fixture
def folder(memory: Memory) -> Path:
    return Path(memory.workspace.root) / "memory"


@pytest.fixture
def tool(memory: Memory) -> MemoryTool:
    return MemoryTool(memory)


@pytest.fixture
def theirs(tmp_path: Path) -> BetaLocalFilesystemMemoryTool:
    return BetaLocalFilesystemMemoryTool(str(tmp_path / "theirs"))


def answer(call: Callable[[object], Any], command: Command) -> str:
    """What the model would read."""
    try:
        return str(call(command))
    except ToolError as error:
        return f"ERROR {error}"


def create(path: str, text: str = "Line 1\nLine 2\nLine 3") -> Command:
    return {"command": "create", "path": path, "file_text": text}


def view(path: str, *lines: int) -> Command:
    return {"command": "view", "path": path, **({"view_range": list(lines)} if lines else {})}


def replace(path: str, old: str, new: str) -> Command:
    return {"command": "str_replace", "path": path, "old_str": old, "new_str": new}


def insert(path: str, line: int, text: str) -> Command:
    return {"command": "insert", "path": path, "insert_line": line, "insert_text": text}


def delete(path: str) -> Command:
    return {"command": "delete", "path": path}


def rename(old: str, new: str) -> Command:
    return {"command": "rename", "old_path": old, "new_path": new}


LONG = "\n".join(f"row {number}" for number in range(1, 31))

SCRIPTS: dict[str, list[Command]] = {
    "create": [
        create("/memories/a.txt"),
        create("/memories/deep/er/b.md"),
        create("/memories/a.txt", "again"),
        view("/memories"),
    ],
    "create over a folder": [create("/memories/d/x.md"), create("/memories/d", "no")],
    "create without an ending": [
        create("/memories/prefs", "tea"),
        view("/memories/prefs"),
        create("/memories/prefs"),
    ],
    "view a file": [
        create("/memories/a.txt"),
        view("/memories/a.txt"),
        create("/memories/e.md", ""),
        view("/memories/e.md"),
    ],
    "view lines": [
        create("/memories/a.md", LONG),
        *(
            view("/memories/a.md", *span)
            for span in ((2, 4), (1, -1), (28, 99), (0, 1), (5, 2), (40, 50), (29, -1), (-3, 2))
        ),
    ],
    "view a folder": [
        create("/memories/b/two.txt", "x" * 1500),
        create("/memories/b/one.md", "x" * 2048),
        create("/memories/b/c/three.xml", "x" * 1023),
        create("/memories/b/c/d/four.json", ""),
        view("/memories"),
        view("/memories/b"),
        view("/memories/b/c/d"),
    ],
    "view nothing": [
        view("/memories/nothing.txt"),
        view("/memories/no/where.md"),
        view("/memories/.hidden"),
    ],
    "str_replace": [
        create("/memories/a.txt", LONG),
        *(
            replace("/memories/a.txt", old, new)
            for old, new in (("row 1\n", "ROW\n"), ("row 15", "a\nb\nc"), ("row 30", ""))
        ),
        view("/memories/a.txt"),
    ],
    "str_replace nothing": [
        create("/memories/a.txt", "Hello\nMiddle\nHello aaa"),
        replace("/memories/a.txt", "absent", "x"),
        replace("/memories/a.txt", "Hello", "x"),
        replace("/memories/a.txt", "aa", "x"),
        replace("/memories/gone.txt", "a", "b"),
        replace("/memories", "a", "b"),
        view("/memories/a.txt"),
    ],
    "insert": [
        create("/memories/a.txt", "Line 1\nLine 2"),
        insert("/memories/a.txt", 0, "first\n"),
        insert("/memories/a.txt", 3, "last\n\n"),
        insert("/memories/a.txt", 1, "two\nlines"),
        view("/memories/a.txt"),
        create("/memories/empty.md", ""),
        insert("/memories/empty.md", 0, "only"),
        view("/memories/empty.md"),
    ],
    "insert nowhere": [
        create("/memories/a.txt", "Line 1\nLine 2"),
        insert("/memories/a.txt", 3, "x"),
        insert("/memories/a.txt", -1, "x"),
        insert("/memories/gone.txt", 0, "x"),
        insert("/memories", 0, "x"),
    ],
    "delete": [
        create("/memories/a.txt"),
        create("/memories/d/e/b.txt"),
        delete("/memories/a.txt"),
        delete("/memories/a.txt"),
        delete("/memories/d"),
        delete("/memories/d"),
        delete("/memories"),
        view("/memories"),
    ],
    "rename": [
        create("/memories/a.txt", "text"),
        rename("/memories/a.txt", "/memories/x/y/b.txt"),
        view("/memories/x/y/b.txt"),
        rename("/memories/x", "/memories/z"),
        view("/memories/z/y/b.txt"),
        view("/memories/x"),
        create("/memories/c.txt"),
        rename("/memories/c.txt", "/memories/z/y/b.txt"),
        rename("/memories/gone.txt", "/memories/new.txt"),
        rename("/memories", "/memories/new"),
        view("/memories"),
    ],
    "rename to another ending": [
        create("/memories/a.md", "text"),
        rename("/memories/a.md", "/memories/b.txt"),
        view("/memories/b.txt"),
        rename("/memories/b.txt", "/memories/c"),
        rename("/memories/c", "/memories/d.md"),
        view("/memories/d.md"),
        view("/memories"),
    ],
    "hidden names": [
        create("/memories/.hidden", "x"),
        view("/memories/.hidden"),
        rename("/memories/.hidden", "/memories/.other.md"),
        delete("/memories/.other.md"),
        view("/memories"),
    ],
    "line ends": [
        create("/memories/a.txt", "one\r\ntwo\r\nthree\r\n"),
        replace("/memories/a.txt", "two", "TWO"),
        insert("/memories/a.txt", 1, "new"),
        view("/memories/a.txt"),
    ],
    "text": [
        create("/memories/é 日本.txt", "naïve 🌸\tx\n"),
        view("/memories/é 日本.txt"),
        replace("/memories/é 日本.txt", "🌸", "ü"),
    ],
    "paths": [
        create("/invalid/path.txt"),
        create("/memories/../../../etc/passwd"),
        view("memories/x.md"),
        view(""),
    ],
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_command_answers_as_the_sdk_does(
    name: str, tool: MemoryTool, theirs: BetaLocalFilesystemMemoryTool
) -> None:
    for command in SCRIPTS[name]:
        assert answer(tool.call, command) == answer(theirs.call, command), command


def test_the_files_hold_what_the_sdks_files_hold(
    tmp_path: Path, memory: Memory, folder: Path
) -> None:
    def snapshot(root: Path) -> dict[str, bytes]:
        return {
            str(file.relative_to(root)): file.read_bytes()
            for file in root.rglob("*")
            if file.is_file()
        }

    tool = MemoryTool(memory)
    for name, script in SCRIPTS.items():
        theirs = BetaLocalFilesystemMemoryTool(str(tmp_path / name))
        for command in script:
            answer(tool.call, command)
            answer(theirs.call, command)
        expected = {
            path if path.endswith(".md") else f"{path}.md": data
            for path, data in snapshot(theirs.memory_root).items()
        }
        assert snapshot(folder) == expected, name
        for entry in memory.workspace.list_folder("memory") or ():
            if entry.path != "memory":
                memory.workspace.delete(entry.path)


def test_a_name_with_another_ending_is_markdown_and_is_found_by_a_search(
    tool: MemoryTool, memory: Memory
) -> None:
    tool.call(create("/memories/prefs.xml", "<drink>Carla takes jasmine tea.</drink>"))
    assert [hit.path for hit in memory.search("jasmine tea").hits] == ["memory/prefs.xml.md"]
    assert answer(tool.call, view("/memories/prefs.xml.md")).endswith("jasmine tea.</drink>"), (
        "it goes by both names"
    )
    assert answer(tool.call, view("/memories")).endswith("\t/memories/prefs.xml")


def test_a_folder_may_be_named_with_a_slash_and_a_file_may_not(tool: MemoryTool) -> None:
    tool.call(create("/memories/d/a.md"))
    assert answer(tool.call, view("/memories/d/")) == answer(tool.call, view("/memories/d"))
    assert answer(tool.call, view("/memories/")) == answer(tool.call, view("/memories"))
    assert "does not exist" in answer(tool.call, view("/memories/d/a.md/"))
    assert "already exists" in answer(tool.call, create("/memories/e/"))


def test_before_anything_is_written_the_folder_is_empty(tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    with Memory.open(tmp_path / "bare", state_dir=tmp_path / "state") as memory:
        assert answer(MemoryTool(memory).call, view("/memories")).splitlines()[1:] == [
            "0B\t/memories"
        ]
        assert not (tmp_path / "bare" / "memory").exists(), "looking makes nothing"


def test_a_file_that_is_not_utf8_is_named_and_can_be_deleted(
    tool: MemoryTool, folder: Path
) -> None:
    (folder / "latin.md").write_bytes(b"caf\xe9 \xff")
    assert (
        answer(tool.call, view("/memories/latin.md"))
        == "ERROR The file /memories/latin.md is not a valid UTF-8 text file."
    )
    assert "UTF-8" in answer(tool.call, replace("/memories/latin.md", "caf", "x"))
    assert (folder / "latin.md").read_bytes() == b"caf\xe9 \xff"
    assert (
        answer(tool.call, delete("/memories/latin.md")) == "Successfully deleted /memories/latin.md"
    )


def test_a_file_of_a_million_lines_is_not_shown(tool: MemoryTool, folder: Path) -> None:
    (folder / "huge.md").write_text("line\n" * 1_000_000, encoding="utf-8")
    assert "exceeds maximum line limit of 999,999 lines" in answer(
        tool.call, view("/memories/huge.md")
    )


def test_folder_with_another_file_is_not_deleted(tool: MemoryTool, folder: Path) -> None:
    (folder / "d" / "e").mkdir(parents=True)
    (folder / "d" / "a.md").write_text("a", encoding="utf-8")
    (folder / "d" / "e" / "budget.xlsx").write_text("b", encoding="utf-8")
    assert "memory/d/e holds budget.xlsx, which is not a note." in answer(
        tool.call, delete("/memories/d")
    )
    assert sorted(path.name for path in (folder / "d").rglob("*")) == ["a.md", "budget.xlsx", "e"]


def test_a_file_marked_read_only_is_neither_changed_nor_moved_nor_deleted(
    tool: MemoryTool, folder: Path
) -> None:
    (folder / "kept.md").write_text("kept", encoding="utf-8")
    (folder / "kept.md").chmod(0o444)
    for command in (
        replace("/memories/kept.md", "kept", "x"),
        insert("/memories/kept.md", 0, "x"),
        delete("/memories/kept.md"),
        rename("/memories/kept.md", "/memories/other.md"),
    ):
        assert "marked read-only" in answer(tool.call, command), command
    assert (folder / "kept.md").read_text(encoding="utf-8") == "kept"


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_links_are_neither_followed_nor_listed(
    tool: MemoryTool, folder: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret", encoding="utf-8")
    (folder / "link").symlink_to(outside, target_is_directory=True)
    (folder / "link.md").symlink_to(outside / "secret.md")
    for command in (
        view("/memories/link"),
        view("/memories/link/secret.md"),
        view("/memories/link.md"),
        create("/memories/link/new.md"),
        create("/memories/link/deep/new.txt"),
        create("/memories/link.md"),
        replace("/memories/link.md", "secret", "x"),
        insert("/memories/link/secret.md", 0, "x"),
        delete("/memories/link"),
        delete("/memories/link.md"),
        rename("/memories/link/secret.md", "/memories/mine.md"),
        rename("/memories/link", "/memories/mine"),
    ):
        said = answer(tool.call, command)
        assert said.startswith("ERROR") and "secret\n" not in said, command
        assert "would escape /memories directory" in said or "already exists" in said, (
            command,
            said,
        )
    assert "link" not in answer(tool.call, view("/memories"))
    assert [path.name for path in outside.iterdir()] == ["secret.md"]
    assert (outside / "secret.md").read_text(encoding="utf-8") == "secret"


def test_edit_is_retried_after_a_concurrent_write(
    memory: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = MemoryTool(memory)
    tool.call(create("/memories/a.md", "one\n"))
    real, others = memory.workspace.replace, ["two\n", "three\n"]

    def crowded(path: str, text: str, base_hash: str, **named: Any) -> str:
        if others:
            memory.workspace.append(path, others.pop(0))
        return real(path, text, base_hash, **named)

    monkeypatch.setattr(memory.workspace, "replace", crowded)
    tool.call(replace("/memories/a.md", "one", "ONE"))
    assert (folder / "a.md").read_text(encoding="utf-8") == "ONE\ntwo\nthree\n"


def test_the_asynchronous_tool_does_the_same(memory: Memory) -> None:
    tool = AsyncMemoryTool(memory)

    async def talk() -> list[str]:
        said = [
            await tool.call(create("/memories/a.txt", "one\n")),
            await tool.call(replace("/memories/a.txt", "one", "two")),
            await tool.call(insert("/memories/a.txt", 1, "three")),
            await tool.call(rename("/memories/a.txt", "/memories/b.txt")),
            await tool.call(view("/memories/b.txt")),
            await tool.call(delete("/memories/b.txt")),
        ]
        with pytest.raises(ToolError, match="does not exist"):
            await tool.call(view("/memories/b.txt"))
        return [str(one) for one in said]

    said = asyncio.run(talk())
    assert said[0] == "File created successfully at: /memories/a.txt"
    assert said[4].endswith("     1\ttwo\n     2\tthree\n     3\t")
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}


def test_a_path_is_cut_before_it_is_repeated(tool: MemoryTool) -> None:
    said = answer(tool.call, view("/memories/" + "a" * 100_000))
    assert said.startswith("ERROR") and len(said) < 500
