"""The tool policy and the sandbox as a whole: tools, prompt, recall, flush, note, MCP and chat."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.agent.flush.flush import SkipFlush
from clawmark.agent.notes.session_note import NoNote, Noted
from clawmark.agent.session.conversation import HostOptions
from clawmark.aio import AsyncMemory
from clawmark.chat.chat import Chat
from clawmark.mcp.instructions import session_access, session_instructions
from clawmark.mcp.resources import Resources
from clawmark.mcp.tools import SessionTools

MAIN, DIRECT = "agent:main:main", "agent:main:telegram:direct:5"
GROUP, CRON, SUBAGENT = (
    f"agent:main:{rest}" for rest in ("telegram:group:1", "cron:job", "subagent:1")
)
ALL = ["memory_search", "memory_get", "memory_append", "memory_forget"]
Tree = Mapping[str, object]


@contextmanager
def opened(folder: Path, tree: Tree) -> Iterator[Memory]:
    workspace, config = folder / "agent", folder / "clawmark.json"
    workspace.mkdir(exist_ok=True)
    (workspace / "MEMORY.md").write_text("The heron nests by the long pier.\n", encoding="utf-8")
    (workspace / "AGENTS.md").write_text("Be brief.\n", encoding="utf-8")
    config.write_text(json.dumps(tree), encoding="utf-8")
    with Memory.open(
        workspace,
        config=config,
        state_dir=folder / "state",
        provider="none",
        background=False,
    ) as memory:
        yield memory


def sandbox(mode: str, access: str = "") -> Tree:
    keys = {"mode": mode, **({"workspaceAccess": access} if access else {})}
    return {"agents": {"defaults": {"sandbox": keys}}}


def names(memory: Memory, key: str | None, *, sandboxed: bool = False) -> list[str]:
    return [tool.name for tool in memory.tools(key, append=True, sandboxed=sandboxed)]


def test_one_kind_of_session_loses_a_tool_and_the_others_keep_it(tmp_path: Path) -> None:
    tree = {"tools": {"bySession": {"direct": {"deny": ["memory_append"]}}}}
    with opened(tmp_path, tree) as memory:
        assert names(memory, MAIN) == ALL
        # Without the tool that writes, there is none that removes either.
        assert names(memory, DIRECT) == ["memory_search", "memory_get"]
        assert "Memory Writing" in memory.prompt(MAIN, append=True).text
        assert "Memory Writing" not in memory.prompt(DIRECT, append=True).text


def test_forgetting_can_be_denied_alone(tmp_path: Path) -> None:
    with opened(tmp_path, {"tools": {"deny": ["memory_forget"]}}) as memory:
        assert names(memory, MAIN) == ["memory_search", "memory_get", "memory_append"]
    with opened(tmp_path, {"tools": {"allow": ["memory_search", "memory_forget"]}}) as memory:
        assert names(memory, MAIN) == ["memory_search"]


def test_sub_agents_answer_from_the_memory_when_a_tool_is_named_for_them(tmp_path: Path) -> None:
    with opened(tmp_path, {}) as memory:
        search = memory.tools(SUBAGENT)[0]
        assert search.call({"query": "heron"})["reason"] == "shared-session"
    tree = {"tools": {"subagents": {"tools": {"alsoAllow": ["memory_search"]}}}}
    with opened(tmp_path, tree) as memory:
        (search,) = memory.tools(SUBAGENT, append=True)
        assert search.call({"query": "heron"})["results"]
        assert memory.tools(CRON)[0].call({"query": "heron"})["reason"] == "shared-session"


@pytest.mark.parametrize(
    ("tree", "key", "left"),
    [
        (sandbox("off", "none"), DIRECT, ALL),
        (sandbox("non-main", "ro"), MAIN, ALL),
        (sandbox("non-main", "ro"), DIRECT, ALL[:2]),
        (sandbox("non-main", "none"), DIRECT, []),
        (sandbox("non-main"), DIRECT, []),
        (sandbox("all", "rw"), MAIN, ALL),
        (sandbox("all", "ro"), MAIN, ALL[:2]),
        (sandbox("all", "none"), MAIN, []),
        (sandbox("all", "none"), None, ALL),
    ],
    ids=str,
)
def test_the_sandbox_decides_which_tools_are_left(
    tmp_path: Path, tree: Tree, key: str | None, left: list[str]
) -> None:
    with opened(tmp_path, tree) as memory:
        assert names(memory, key) == left


def test_a_session_that_its_host_calls_sandboxed_obeys_the_same_key(tmp_path: Path) -> None:
    with opened(tmp_path, sandbox("off", "ro")) as memory:
        assert names(memory, MAIN, sandboxed=True) == ALL[:2]


def test_a_sandbox_without_the_workspace_sees_nothing_of_it(tmp_path: Path) -> None:
    with opened(tmp_path, sandbox("all", "none")) as memory:
        text = memory.prompt(MAIN, append=True).text
        assert not any(word in text for word in ("heron", "Be brief", "memory_search", "MEMORY.md"))
        assert str(tmp_path) not in text
        assert memory.recall("where does the heron nest?", MAIN, min_score=0) == ""
        assert "heron" in memory.recall("where does the heron nest?", None, min_score=0)
    with opened(tmp_path, sandbox("all", "ro")) as memory:
        assert "heron" in memory.prompt(MAIN).text


@pytest.mark.parametrize(("access", "writes"), [("rw", True), ("ro", False), ("none", False)])
def test_a_sandbox_that_may_not_write_neither_flushes_nor_leaves_a_note(
    tmp_path: Path, access: str, writes: bool
) -> None:
    with opened(tmp_path, sandbox("all", access)) as memory:
        conversation = memory.conversation(MAIN)
        conversation.start()
        conversation.on_user("We will paint the boat house green in March.")
        flushed = conversation.before_compaction()
        note = conversation.end()
    assert isinstance(flushed, SkipFlush)
    assert (flushed.because == "sandboxed") is not writes
    assert isinstance(note, Noted if writes else NoNote)
    assert list((tmp_path / "agent").glob("memory/*.md")) == (
        []
        if not writes
        else [
            tmp_path / "agent" / note.path  # type: ignore[union-attr]
        ]
    )


def test_the_hooks_of_a_session_that_its_host_calls_sandboxed_may_not_write(
    tmp_path: Path,
) -> None:
    with opened(tmp_path, sandbox("off", "ro")) as memory:
        assert memory.lifecycle(MAIN).session.access.writes
        access = memory.lifecycle(MAIN, sandboxed=True).session.access
        assert access.reads and not access.writes


def test_the_host_option_alone_withholds_the_workspace(tmp_path: Path) -> None:
    with opened(tmp_path, {}) as memory:
        options = HostOptions(sandboxed=True)
        conversation = memory.conversation(MAIN, recall=True, host_options=options)
        assert "heron" not in conversation.start()
        turn = conversation.on_user("Where does the heron nest by the pier?")
        assert (turn.recalled, conversation.end()) == ("", NoNote("sandboxed"))


@pytest.mark.anyio
async def test_mcp_tells_which_tools_of_memory_lancedb_change_the_memory(tmp_path: Path) -> None:
    pytest.importorskip("lancedb")
    (tmp_path / "agent").mkdir()
    config = tmp_path / "clawmark.json"
    tree = {"plugins": {"slots": {"memory": "memory-lancedb"}}}
    config.write_text(json.dumps(tree), encoding="utf-8")
    async with AsyncMemory.open(
        tmp_path / "agent", config=config, state_dir=tmp_path / "state", provider="none"
    ) as memory:
        hints = {
            tool.name: (tool.annotations.read_only_hint, tool.annotations.destructive_hint)
            for tool in SessionTools(memory, MAIN).tools
            if tool.annotations is not None
        }
    assert hints["memory_recall"] == (True, False)
    assert hints["memory_store"] == (False, False)
    assert hints["memory_forget"] == (False, True)


async def mcp_session(folder: Path, tree: Tree) -> tuple[list[str], str, int, bool]:
    """Return the tools, the instructions and the files of a session, and whether a search fails."""
    with opened(folder, tree) as memory:
        instructions = session_instructions(memory, MAIN)
    async with AsyncMemory.open(
        folder / "agent",
        config=folder / "clawmark.json",
        state_dir=folder / "state",
        provider="none",
    ) as memory:
        tools = SessionTools(memory, MAIN)
        listed = await Resources(memory, session_access(memory, MAIN)).list(None)
        answer = await tools.call("memory_search", {"query": "heron"})
    names = [tool.name for tool in tools.tools]
    return names, instructions, len(listed.resources), answer.is_error is True


@pytest.mark.anyio
async def test_an_mcp_session_has_what_the_policy_leaves(tmp_path: Path) -> None:
    tools, instructions, files, fails = await mcp_session(
        tmp_path, {"tools": {"allow": ["memory_get"]}}
    )
    assert (tools, files, fails) == (["memory_get"], 1, True)
    assert "memory_status" not in instructions and "memory_get" in instructions


@pytest.mark.anyio
async def test_an_mcp_session_in_a_sandbox_without_the_workspace_has_nothing(
    tmp_path: Path,
) -> None:
    tools, instructions, files, fails = await mcp_session(tmp_path, sandbox("all"))
    assert (tools, files, fails) == ([], 0, True)
    assert "Memory is unavailable in this sandbox." in instructions


@pytest.mark.parametrize(
    ("access", "left"),
    [
        ("rw", [*ALL, "file_read", "file_write", "file_edit", "file_delete"]),
        ("ro", [*ALL[:2], "file_read"]),
        ("none", []),
    ],
)
def test_a_chat_has_the_file_tools_that_its_sandbox_leaves(
    tmp_path: Path, access: str, left: list[str]
) -> None:
    with opened(tmp_path, sandbox("all", access)) as memory:
        chat = Chat(memory, agent=None, conversation=memory.conversation(MAIN))  # type: ignore[arg-type]
        assert [tool.name for tool in chat.tools()] == left
        assert ("file_write" in chat.own_section) is (access == "rw")
