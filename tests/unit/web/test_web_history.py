"""The model of a file's versions, and restoring one."""

from __future__ import annotations

from pathlib import Path

import pytest
from web_memory import opened, write

from clawmark.model.errors import PathDenied, WorkspaceError
from clawmark.web.pages.history import history_page, restore


def test_versions_have_their_lines_and_the_diff_of_one_is_shown(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        base = memory.replace("MEMORY.md", "- one\n- two\n", "")
        memory.history.record()
        memory.replace("MEMORY.md", "- one\n- three\n", base)
        listed = history_page(memory, "MEMORY.md")
        newest, oldest = listed.versions
        shown = history_page(memory, "MEMORY.md", oldest.id).details
    assert (newest.kind, newest.added, newest.removed) == ("changed", 1, 1)
    assert (oldest.kind, oldest.added, oldest.removed) == ("added", 2, 0)
    assert shown is not None
    assert [one.text for one in shown.changes if one.sign == "+"] == ["- one", "- two"]
    assert [one.text for one in shown.restoring if one.sign == "+"] == ["- two"]


def test_a_version_is_restored_only_over_the_file_that_was_shown(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        base = memory.replace("MEMORY.md", "- one\n", "")
        memory.history.record()
        memory.replace("MEMORY.md", "- two\n", base)
        oldest = history_page(memory, "MEMORY.md").versions[-1].id
        shown = history_page(memory, "MEMORY.md", oldest).details
        assert shown is not None
        write(tmp_path / "agent", "MEMORY.md", "- three\n")
        assert "changed since" in restore(memory, "MEMORY.md", oldest, shown.base)
        assert (tmp_path / "agent" / "MEMORY.md").read_text() == "- three\n"
        again = history_page(memory, "MEMORY.md", oldest).details
        assert again is not None
        assert restore(memory, "MEMORY.md", oldest, again.base) == ""
    assert (tmp_path / "agent" / "MEMORY.md").read_text() == "- one\n"


def test_a_deleted_file_can_be_brought_back(tmp_path: Path) -> None:
    with opened(tmp_path, {"memory/a.md": "- one\n", "MEMORY.md": "- two\n"}) as memory:
        memory.history.record()
        (tmp_path / "agent" / "memory" / "a.md").unlink()
        newest, oldest = history_page(memory, "memory/a.md").versions
        assert newest.kind == "removed"
        assert restore(memory, "memory/a.md", oldest.id, "") == ""
    assert (tmp_path / "agent" / "memory" / "a.md").read_text() == "- one\n"


def test_an_unknown_version_and_one_of_another_file_are_refused(tmp_path: Path) -> None:
    with opened(tmp_path, {"memory/a.md": "- one\n", "memory/b.md": "- two\n"}) as memory:
        memory.history.record()
        write(tmp_path / "agent", "memory/b.md", "- three\n")
        of_b = history_page(memory, "memory/b.md").versions[0].id
        with pytest.raises(WorkspaceError, match="did not change"):
            history_page(memory, "memory/a.md", of_b)
        with pytest.raises(WorkspaceError, match="is not a version"):
            history_page(memory, "memory/a.md", "0000000000")


def test_a_path_outside_the_workspace_has_no_history(tmp_path: Path) -> None:
    with opened(tmp_path) as memory, pytest.raises(PathDenied):
        history_page(memory, "../../etc/passwd")
