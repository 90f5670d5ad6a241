"""The file tools of the chat: what they read, write and refuse."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from clawmark.chat.file_tools import FileTools
from clawmark.text.secrets.redact import mask


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "memory").mkdir(parents=True)
    (folder / "IDENTITY.md").write_text("# Card\n\n- **Name:**\n", encoding="utf-8")
    (folder / "MEMORY.md").write_text("# Facts\n\n- Billing uses PostgreSQL.\n", encoding="utf-8")
    (folder / "memory" / "2026-11-15.md").write_text(
        "# 2026-11-15\n\n- Tea with Ann.\n", encoding="utf-8"
    )
    return folder


@pytest.fixture
def files(root: Path) -> FileTools:
    return FileTools(str(root), str(root.parent / "locks"))


def use(files: FileTools, name: str, **arguments: object) -> dict[str, Any]:
    [tool] = [tool for tool in files.tools() if tool.name == name]
    return tool.call(arguments)


def text(root: Path, path: str) -> str:
    return (root / path).read_text(encoding="utf-8")


def test_file_can_be_replaced_after_it_was_read(files: FileTools, root: Path) -> None:
    assert use(files, "file_read", path="IDENTITY.md")["text"] == "# Card\n\n- **Name:**"
    answer = use(files, "file_write", path="IDENTITY.md", text="# Card\n\n- **Name:** Pebble\n")
    assert answer == {"written": True, "path": "IDENTITY.md", "lines": 3}
    assert text(root, "IDENTITY.md") == "# Card\n\n- **Name:** Pebble\n"


def test_file_in_the_prompt_can_be_replaced(files: FileTools, root: Path) -> None:
    files.show(["IDENTITY.md"], 20_000)
    assert use(files, "file_write", path="IDENTITY.md", text="Pebble\n")["written"]


def test_file_shown_in_part_must_be_read_before_it_is_replaced(
    files: FileTools, root: Path
) -> None:
    files.show(["IDENTITY.md"], 5)
    answer = use(files, "file_write", path="IDENTITY.md", text="Pebble\n")
    assert "have not seen it" in answer["error"] and "file_read" in answer["action"]
    assert text(root, "IDENTITY.md").startswith("# Card")


def test_file_changed_since_it_was_seen_is_not_replaced(files: FileTools, root: Path) -> None:
    files.show(["IDENTITY.md"], 20_000)
    (root / "IDENTITY.md").write_text("mine\n", encoding="utf-8")
    assert (
        "have not seen its current version"
        in use(files, "file_write", path="IDENTITY.md", text="Pebble\n")["error"]
    )
    assert text(root, "IDENTITY.md") == "mine\n"


def test_new_file_is_created_with_its_folders(files: FileTools, root: Path) -> None:
    assert use(files, "file_write", path="notes/plan.md", text="# Plan\n")["written"]
    assert text(root, "notes/plan.md") == "# Plan\n"
    assert (
        use(files, "file_write", path=f"{files.root}/notes/other.md", text="x\n")["path"]
        == "notes/other.md"
    )


@pytest.mark.parametrize("path", ["MEMORY.md", "memory.md", "memory/2026-11-15.md"])
def test_memory_files_cannot_be_replaced(files: FileTools, root: Path, path: str) -> None:
    (root / "memory.md").write_text("- also memory\n", encoding="utf-8")
    before = text(root, path)
    use(files, "file_read", path=path)
    assert "memory_append" in use(files, "file_write", path=path, text="gone\n")["action"]
    assert text(root, path) == before


@pytest.mark.parametrize(
    "path", ["MEMORY.md", "memory.md", "memory/2026-11-16.md", "memory/people.md"]
)
def test_new_memory_files_cannot_be_created_without_the_gate(
    files: FileTools, root: Path, path: str
) -> None:
    (root / path).unlink(missing_ok=True)
    assert "memory_append" in use(files, "file_write", path=path, text="anything\n")["action"]
    assert not (root / path).exists()


@pytest.mark.parametrize(
    "new", ['{"rows": [1, 2]}', "Traceback (most recent call last):\n  x", "x" * 2001]
)
def test_edits_of_memory_pass_the_write_gate(files: FileTools, root: Path, new: str) -> None:
    before = text(root, "MEMORY.md")
    assert use(files, "file_edit", path="MEMORY.md", old="- Billing uses PostgreSQL.", new=new)[
        "error"
    ]
    assert text(root, "MEMORY.md") == before


def test_existing_label_is_allowed_in_an_edit(files: FileTools, root: Path) -> None:
    label = "<!-- clawmark: origin=user -->"
    (root / "MEMORY.md").write_text(f"- Billing uses PostgreSQL. {label}\n", encoding="utf-8")
    old, new = (f"- Billing uses {name}. {label}" for name in ("PostgreSQL", "MySQL"))
    assert use(files, "file_edit", path="MEMORY.md", old=old, new=new)["written"]


def test_memory_can_be_edited(files: FileTools, root: Path) -> None:
    assert use(files, "file_edit", path="MEMORY.md", old="PostgreSQL", new="MySQL")["written"]
    assert text(root, "MEMORY.md") == "# Facts\n\n- Billing uses MySQL.\n"


def test_edit_needs_a_passage_that_occurs_exactly_once(files: FileTools, root: Path) -> None:
    assert (
        "does not occur"
        in use(files, "file_edit", path="MEMORY.md", old="Oracle", new="x")["error"]
    )
    (root / "twice.md").write_text("a\na\n", encoding="utf-8")
    assert (
        "occurs 2 times in twice.md"
        in use(files, "file_edit", path="twice.md", old="a", new="b")["error"]
    )
    assert text(root, "twice.md") == "a\na\n"


def test_only_bootstrap_file_can_be_deleted(files: FileTools, root: Path) -> None:
    (root / "BOOTSTRAP.md").write_text("hello\n", encoding="utf-8")
    assert use(files, "file_delete", path="BOOTSTRAP.md") == {
        "deleted": True,
        "path": "BOOTSTRAP.md",
    }
    assert not (root / "BOOTSTRAP.md").exists()
    assert use(files, "file_delete", path="BOOTSTRAP.md")["deleted"] is False
    for path in ("MEMORY.md", "memory/2026-11-15.md", "memory/BOOTSTRAP.md", "IDENTITY.md"):
        assert "cannot be deleted" in use(files, "file_delete", path=path)["error"]
    assert (root / "MEMORY.md").exists() and (root / "IDENTITY.md").exists()


OUTSIDE = [
    "../outside.md",
    "memory/../../outside.md",
    "/etc/hosts.md",
    "~/outside.md",
    ".clawmark/workspace-state.md",
    "notes/.hidden.md",
    ".git/config.md",
    "script.py",
    "notes",
    "",
    "a\0b.md",
    "memory//x.md",
    "./../outside.md",
    "link.md",
    "linked/inside.md",
]


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("name", ["file_read", "file_write", "file_edit", "file_delete"])
def test_only_markdown_files_in_the_workspace_are_allowed(
    files: FileTools, root: Path, name: str, path: str
) -> None:
    outside = root.parent / "outside.md"
    outside.write_text("secret\n", encoding="utf-8")
    (root.parent / "elsewhere").mkdir()
    (root.parent / "elsewhere" / "inside.md").write_text("secret\n", encoding="utf-8")
    os.symlink(outside, root / "link.md")
    os.symlink(root.parent / "elsewhere", root / "linked")
    answer = use(files, name, path=path, text="owned", old="secret", new="owned")
    if path == "~/outside.md" and name in ("file_read", "file_write"):
        assert not (
            Path.home() / "outside.md"
        ).exists()  # a folder called ~ is a folder like any other
    else:
        assert answer["error"] and "secret" not in str(answer)
    assert outside.read_text(encoding="utf-8") == "secret\n"
    assert (root.parent / "elsewhere" / "inside.md").read_text(encoding="utf-8") == "secret\n"
    assert sorted(one.name for one in root.parent.iterdir() if one.name != "locks") == [
        "elsewhere",
        "outside.md",
        "workspace",
    ]


def test_masks_and_recalled_blocks_are_refused(files: FileTools, root: Path) -> None:
    for wrong in (f"key: {mask('key')}\n", "<relevant-memories>\n- old\n</relevant-memories>\n"):
        assert "cannot be saved" in use(files, "file_write", path="new.md", text=wrong)["error"]
        assert (
            "cannot be saved"
            in use(files, "file_edit", path="MEMORY.md", old="PostgreSQL", new=wrong)["error"]
        )
    assert not (root / "new.md").exists()


@pytest.mark.parametrize(
    "given", [None, "", "[]", "{", '{"path": 3}', '{"path": "x.md", "text": ["a"], "old": 1}']
)
@pytest.mark.parametrize("name", ["file_write", "file_edit", "file_delete"])
def test_invalid_call_returns_an_error(files: FileTools, name: str, given: object) -> None:
    [tool] = [tool for tool in files.tools() if tool.name == name]
    assert tool.call(given)["error"] and tool.call(given)["action"]


def test_text_over_the_limit_is_refused(files: FileTools, root: Path) -> None:
    assert "100,000" in use(files, "file_write", path="x.md", text="x" * 100_001)["error"]
    assert not (root / "x.md").exists()


def test_long_file_is_read_in_parts(files: FileTools, root: Path) -> None:
    (root / "long.md").write_text(
        "".join(f"line {number}\n" for number in range(1, 1001)), encoding="utf-8"
    )
    first = use(files, "file_read", path="long.md")
    assert first["truncated"] and first["nextFrom"] == 401
    assert use(files, "file_read", path="long.md", **{"from": 401, "lines": 2})["text"].startswith(
        "line 401\nline 402"
    )
    assert "have not seen it" in use(files, "file_write", path="long.md", text="short\n")["error"]
