"""`plugins.slots.memory: "none"`: no tool, no prompt section, no flush and no index, by any door;
files are read and written all the same.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from chat import ChatServer, say
from commands import Place, says_one_clear_thing
from mcp_servers import stdio_server

from clawmark import AsyncMemory, ConfigError, Memory
from clawmark.adapters.plain import Toolbox

SENTENCE = 'The memory slot is empty: plugins.slots.memory is "none", so nothing is indexed.'
KEY = "agent:main:main"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.home.mkdir()
    made.state.mkdir()
    made.write("MEMORY.md", "# Facts\n\nTea is served on this ship at four.\n")
    made.write("SOUL.md", "You are a ship's cook.\n")
    made.write("memory/2026-11-15.md", "# 2026-11-15\n\n- The osprey came late.\n")
    (made.state / "clawmark.json").write_text(
        '{"plugins": {"slots": {"memory": "none"}}}', encoding="utf-8"
    )
    return made


@pytest.fixture
def memory(place: Place) -> Iterator[Memory]:
    with Memory.open(place.workspace, state_dir=place.state) as opened:
        yield opened


def index_files(place: Place) -> list[str]:
    """Everything in the state folder that an index could be."""
    return [str(file) for file in place.state.rglob("*") if ".sqlite" in file.name]


EVENT = json.dumps({"session_id": "s1", "prompt": "When is tea served on this ship?"})
WORKING = [
    ["remember", "Tea moved to five o'clock on Sundays."],
    ["get", "MEMORY.md"],
    ["prompt"],
    ["prompt", "--append"],
    ["status"],
    ["status", "--deep"],
    ["doctor"],
    ["doctor", "--fix"],
    ["plugins"],
    ["sessions"],
    ["sources"],
    ["add", "{extra}"],
    ["config", "list"],
    ["import", "markdown", "{extra}"],
    ["install", "claude-code", "--dry-run"],
    ["init", "{extra}"],
    ["demo"],
    ["flush"],
    ["flush", "--dry-run"],
    ["hook", "claude-code", "SessionStart"],
    ["hook", "claude-code", "UserPromptSubmit"],
    ["hook", "claude-code", "Stop"],
    ["hook", "claude-code", "PreCompact"],
    ["hook", "claude-code", "SessionEnd"],
]
REFUSED = [
    ["search", "tea"],
    ["index"],
    ["index", "--dry-run"],
    ["watch"],
    ["verify"],
    ["status", "--index"],
    ["memory", "search", "tea"],
    ["memory", "index"],
    ["eval", "{extra}/questions.jsonl"],
]


def test_no_verb_leaves_an_index_behind(place: Place) -> None:
    extra = place.folder / "extra"
    extra.mkdir()
    (extra / "notes.md").write_text("Tea notes.\n", encoding="utf-8")
    question = '{"question": "when is tea?", "path": "MEMORY.md"}'
    (extra / "questions.jsonl").write_text(question, encoding="utf-8")
    for words in WORKING:
        ran = place.run(*(word.replace("{extra}", str(extra)) for word in words), stdin=EVENT)
        assert ran.code == 0 and "Traceback" not in ran.err, (words, ran)
        assert index_files(place) == [], words
    for words in REFUSED:
        ran = place.run(*(word.replace("{extra}", str(extra)) for word in words))
        assert (ran.code, says_one_clear_thing(ran)) == (2, True), (words, ran)
        assert SENTENCE in ran.err, (words, ran)
        assert index_files(place) == [], words


def test_files_are_read_and_written(place: Place) -> None:
    assert "Tea is served" in place.run("get", "MEMORY.md").out
    written = place.run("remember", "The cook is called Ann Baker.", "--json").json()
    assert "Ann Baker" in place.run("get", written["citation"]).out


def test_the_prompt_has_the_files_of_the_workspace_and_nothing_about_memory_tools(
    memory: Memory,
) -> None:
    prompt = memory.prompt(KEY, append=True)
    assert [section.name for section in prompt.sections] == ["project context", "runtime"]
    assert "ship's cook" in prompt.text and "osprey" not in prompt.text
    for word in ("memory_search", "memory_get", "memory_append", "Memory Recall", "| memory:"):
        assert word not in prompt.text


def test_the_library_has_no_tools_no_recall_and_no_search(memory: Memory, place: Place) -> None:
    for key in (None, KEY, "agent:main:cron:1"):
        assert memory.tools(key, append=True) == []
    assert memory.recall("When is tea served on this ship?", KEY, min_score=0.0) == ""
    assert memory.session_started(KEY) is False
    memory.compacted()
    for refused in (
        lambda: memory.search("tea"),
        lambda: memory.sync(),
        lambda: memory.watch(),
        lambda: memory.verify(),
        lambda: memory.spending(),
    ):
        with pytest.raises(ConfigError, match="The memory slot is empty"):
            refused()
    assert memory.plan()[1].files and memory.status().memory_plugin == "none"
    assert memory.doctor(fix=True, probe=True)
    conversation = memory.conversation(KEY, recall=True)
    conversation.start()
    assert conversation.on_user("When is tea served on this ship?").recalled == ""
    conversation.on_usage(reply="At four.")
    conversation.before_compaction()
    conversation.end()
    assert index_files(place) == []


def test_the_mcp_server_has_no_tools_and_no_prompts_but_serves_files(place: Place) -> None:
    pytest.importorskip("mcp")
    with stdio_server([], place.environment()) as server:
        instructions = server.initialize()["result"]["instructions"]
        tools = server.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        prompts = server.ask({"jsonrpc": "2.0", "id": 2, "method": "prompts/list"})
        params = {"uri": "memory://MEMORY.md"}
        file = server.ask({"jsonrpc": "2.0", "id": 3, "method": "resources/read", "params": params})
        params = {"name": "memory_search"}
        called = server.ask({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": params})
    assert "memory_" not in instructions and "slot is empty" in instructions
    assert tools["result"]["tools"] == [] and prompts["result"]["prompts"] == []
    assert "Tea is served" in file["result"]["contents"][0]["text"]
    assert called["result"]["isError"] is True
    assert index_files(place) == []


def test_a_chat_has_only_the_tools_for_files(place: Place) -> None:
    pytest.importorskip("pydantic_ai")
    from clawmark.chat.chat import ChatCallbacks, open_chat

    ignore = ChatCallbacks(*(lambda *_: None,) * 3)
    with (
        ChatServer(lambda _: say("At four.")) as server,
        Memory.open(place.workspace, state_dir=place.state) as memory,
        open_chat(memory, f"scripted@{server.openai_url}", KEY, os.environ, recall=True) as chat,
    ):
        chat.start()
        assert chat.say("When is tea served?", ignore).text == "At four."
        assert not [tool.name for tool in chat.tools() if tool.name.startswith("memory")]
        sent = server.seen[0].system
    assert "memory_" not in sent and "memory has its own tools" not in sent
    assert index_files(place) == []


def test_adapters_have_no_tools(memory: Memory) -> None:
    assert Toolbox(memory).openai() == Toolbox(memory).anthropic() == []
    assert '"action": "There are no tools."' in Toolbox(memory).call("memory_search", {})


def test_the_adapter_for_openai_agents_has_no_tools(memory: Memory) -> None:
    pytest.importorskip("agents")
    from clawmark.adapters.openai_agents import memory_tools

    assert memory_tools(memory) == []


def test_the_adapter_for_pydantic_ai_has_no_tools(memory: Memory) -> None:
    pytest.importorskip("pydantic_ai")
    from clawmark.adapters.pydantic_ai import memory_toolset

    assert memory_toolset(memory).tools == {}


def test_the_adapter_for_anthropic_refuses_to_make_its_tool(memory: Memory) -> None:
    pytest.importorskip("anthropic")
    from clawmark.adapters.anthropic import AsyncMemoryTool, MemoryTool

    for tool in (MemoryTool, AsyncMemoryTool):
        with pytest.raises(ConfigError, match="The memory slot is empty"):
            tool(memory)


def test_an_async_memory_has_no_tools(place: Place) -> None:
    async def names() -> list[str]:
        async with AsyncMemory.open(place.workspace, state_dir=place.state) as memory:
            return [tool.name for tool in memory.tools(KEY, append=True)]

    assert asyncio.run(names()) == []
    assert index_files(place) == []


def test_an_index_from_before_is_kept_and_not_updated(place: Place) -> None:
    configured = place.state / "clawmark.json"
    text = configured.read_text(encoding="utf-8")
    configured.unlink()
    assert place.run("index").code == 0
    (index,) = [file for file in index_files(place) if file.endswith(".sqlite")]
    before = Path(index).read_bytes()
    configured.write_text(text, encoding="utf-8")
    place.write("memory/2026-11-16.md", "- Another day.\n")
    assert place.run("search", "tea").code == 2
    assert place.run("doctor", "--fix").code == 0
    assert Path(index).read_bytes() == before
