"""USER.md, which says who the user is: read on request by private sessions, and by no other; never
indexed or written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commands import new_place

from clawmark import Memory
from clawmark.model.errors import PathDenied

GROUP = "agent:main:telegram:group:1"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("The office is in Lisbon.\n", encoding="utf-8")
    (folder / "USER.md").write_text("# User\n\n- Her name is Ana.\n", encoding="utf-8")
    return folder


def opened(workspace: Path) -> Memory:
    settings = {"memorySearch.provider": "none", "memory.sharedSessions": ["group"]}
    return Memory.open(
        workspace, state_dir=workspace.parent / "state", overrides=settings, background=False
    )


def asked(memory: Memory, path: str, session_key: str | None) -> Any:
    return memory.tools(session_key)[1].call({"path": path})


@pytest.mark.parametrize("session_key", [None, "agent:main:main", "agent:main:telegram:direct:7"])
def test_a_private_session_reads_it(workspace: Path, session_key: str | None) -> None:
    with opened(workspace) as memory:
        for path in ("USER.md", "./USER.md", "USER.md#L3", str(workspace / "USER.md")):
            payload = asked(memory, path, session_key)
            assert (payload["status"], payload["path"]) == ("ok", "USER.md")
            assert "Her name is Ana." in payload["text"]


def test_an_empty_session_key_is_an_unknown_session_and_does_not_read_it(workspace: Path) -> None:
    with opened(workspace) as memory:
        payload = asked(memory, "USER.md", "")
        assert payload["status"] == "error" and "Ana" not in str(payload)


def test_a_shared_session_that_may_search_memory_does_not_read_it(workspace: Path) -> None:
    with opened(workspace) as memory:
        assert asked(memory, "MEMORY.md", GROUP)["status"] == "ok"
        for path in ("USER.md", "./USER.md", "USER.md#L3", str(workspace / "USER.md")):
            payload = asked(memory, path, GROUP)
            assert (payload["status"], payload["code"], payload["text"]) == (
                "error",
                "MEMORY_PATH_NOT_ALLOWED",
                "",
            )
            assert "Ana" not in str(payload)


def test_a_shared_session_cannot_learn_whether_a_file_exists(workspace: Path) -> None:
    with opened(workspace) as memory:
        there = asked(memory, "USER.md", GROUP)
        (workspace / "USER.md").unlink()
        assert asked(memory, "USER.md", GROUP) == there
        assert asked(memory, "USER.md", None)["status"] == "not_found"


def test_it_is_neither_searched_nor_written(workspace: Path) -> None:
    with opened(workspace) as memory:
        memory.sync()
        assert not memory.search("Ana").hits
        for write in (
            lambda: memory.append("- x", to="USER.md"),
            lambda: memory.replace("USER.md", "x\n", ""),
        ):
            with pytest.raises(PathDenied):
                write()
    assert (workspace / "USER.md").read_text(encoding="utf-8") == "# User\n\n- Her name is Ana.\n"


def test_the_command_reads_it(tmp_path: Path) -> None:
    place = new_place(tmp_path)
    place.write("USER.md", "- Her name is Ana.\n")
    assert place.run("get", "USER.md").out == "- Her name is Ana.\n"
