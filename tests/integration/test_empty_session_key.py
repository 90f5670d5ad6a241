"""An empty session key is an unknown session at every door; only a caller that gives no key at all
is the owner.

A host whose variable is empty passes an empty key. Each door is asked twice: without a key it shows
the private note, which proves that the question finds it, and with the empty key it does not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from commands import Place, new_place
from mcp_servers import INITIALIZE, INITIALIZED, StdioServer, call

from clawmark import Memory
from clawmark.adapters.plain import Toolbox
from clawmark.agent.tools import render
from clawmark.aio import AsyncMemory
from clawmark.testing import HashingEmbedder

QUESTION = "kingfisher by the harbour"
PRIVATE = "marker4711"


class Scene(NamedTuple):
    """A workspace with one private note."""

    place: Place
    memory: Memory


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    place = new_place(tmp_path_factory.mktemp("keys"))
    place.write("MEMORY.md", f"# Facts\n\n- The {QUESTION} is {PRIVATE}.\n")
    with Memory.open(
        place.workspace, state_dir=place.state, embedder=HashingEmbedder(), background=False
    ) as memory:
        memory.sync()
        yield Scene(place, memory)


def called(tools: Any) -> str:
    """What all tools of a session answer."""
    answers = {
        "memory_search": {"query": QUESTION, "minScore": 0},
        "memory_get": {"path": "MEMORY.md"},
        "memory_append": {"text": "x"},
        "memory_forget": {"text": "a text that is nowhere"},
    }
    return "".join(render(tool.call(answers[tool.name])) for tool in tools)


def library_tools(scene: Scene, *key: str) -> str:
    return called(scene.memory.tools(*key, append=True))


def library_prompt(scene: Scene, *key: str) -> str:
    return scene.memory.prompt(*key).text


def library_recall(scene: Scene, *key: str) -> str:
    return scene.memory.recall(QUESTION, *key, min_score=0)


def library_conversation(scene: Scene, *key: str) -> str:
    conversation = scene.memory.conversation(*key, recall=True)
    return conversation.start()


def awaited(scene: Scene, *key: str) -> str:
    async def ask() -> str:
        memory = AsyncMemory(lambda: scene.memory)
        await memory.__aenter__()  # closing it would close the memory of the other tests
        search = next(tool for tool in memory.tools(*key) if tool.name == "memory_search")
        recalled = await memory.recall(QUESTION, *key, min_score=0)
        answer = render(await search.call({"query": QUESTION, "minScore": 0}))
        return (await memory.prompt(*key)).text + recalled + answer

    return asyncio.run(ask())


def plain_adapter(scene: Scene, *key: str) -> str:
    return called(Toolbox(scene.memory, *key).tools)


def pydantic_ai(scene: Scene, *key: str) -> str:
    pytest.importorskip("pydantic_ai")
    from clawmark.adapters.pydantic_ai import memory_toolset

    search: Any = memory_toolset(scene.memory, *key, append=False).tools["memory_search"].function
    return str(asyncio.run(search(query=QUESTION, minScore=0)))


def openai_agents(scene: Scene, *key: str) -> str:
    pytest.importorskip("agents")
    from clawmark.adapters.openai_agents import memory_tools

    search: Any = next(
        tool for tool in memory_tools(scene.memory, *key) if tool.name == "memory_search"
    )
    return str(
        asyncio.run(search.on_invoke_tool(None, json.dumps({"query": QUESTION, "minScore": 0})))
    )


def llama_index(scene: Scene, *key: str) -> str:
    pytest.importorskip("llama_index.core")
    from llama_index.core.base.llms.types import ChatMessage, MessageRole

    from clawmark.adapters.llama_index import ClawmarkMemoryBlock

    named = {"session_key": key[0]} if key else {}
    block = ClawmarkMemoryBlock(memory=scene.memory, **named)
    return str(asyncio.run(block.aget([ChatMessage(role=MessageRole.USER, content=QUESTION)])))


def flag(key: tuple[str, ...]) -> list[str]:
    return ["--session", key[0]] if key else []


def cli_prompt(scene: Scene, *key: str) -> str:
    ran = scene.place.run("prompt", *flag(key))
    assert ran.code == 0, ran.err
    return ran.out


def hook_start(scene: Scene, *key: str) -> str:
    return scene.place.run("hook", "claude-code", "SessionStart", *flag(key), stdin="{}").out


def hook_prompt(scene: Scene, *key: str) -> str:
    event = json.dumps({"prompt": f"Where is the {QUESTION}?"})
    return scene.place.run(
        "hook", "claude-code", "UserPromptSubmit", "--bar", "0", *flag(key), stdin=event
    ).out


def mcp_stdio(scene: Scene, *key: str) -> str:
    pytest.importorskip("mcp")
    server = StdioServer(flag(key), scene.place.environment())
    with closing(server):
        server.send(INITIALIZE)
        server.line()
        server.send(INITIALIZED)
        server.send(call("memory_search", {"query": QUESTION, "minScore": 0}))
        return (server.line() or b"").decode()


DOORS: list[Callable[..., str]] = [
    library_tools,
    library_prompt,
    library_recall,
    library_conversation,
    awaited,
    plain_adapter,
    pydantic_ai,
    openai_agents,
    llama_index,
    cli_prompt,
    hook_start,
    hook_prompt,
    mcp_stdio,
]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_private_memory_is_shown_without_a_key_and_not_with_an_empty_one(
    scene: Scene, door: Callable[..., str]
) -> None:
    assert PRIVATE in door(scene)
    assert PRIVATE not in door(scene, "")


def test_prompt_says_that_an_empty_key_is_an_unknown_session(scene: Scene) -> None:
    owner, unknown = (scene.place.run("prompt", "--json", *flag(key)).json() for key in ((), ("",)))
    assert (owner["session"], owner["kind"], owner["private"]) == (None, "main", True)
    assert (unknown["session"], unknown["kind"], unknown["private"]) == ("", "unknown", False)


@pytest.mark.parametrize(
    "words", [("chat", "--model", "openai:x"), ("flush",)], ids=["chat", "flush"]
)
def test_commands_that_write_a_conversation_refuse_an_empty_key(
    scene: Scene, words: tuple[str, ...]
) -> None:
    ran = scene.place.run(*words, "--session", "")
    assert ran.code == 2 and "--session" in ran.err and PRIVATE not in ran.out


def test_hook_writes_no_note_of_a_session_with_an_empty_key(scene: Scene, tmp_path: Path) -> None:
    transcript = tmp_path / "s1.jsonl"
    transcript.write_text(
        '{"type":"user","message":{"role":"user","content":"The ferry leaves at seven from '
        'Lisbon."}}\n'
    )
    event = json.dumps({"session_id": "s1", "transcript_path": str(transcript)})
    ran = scene.place.run("hook", "claude-code", "SessionEnd", "--session", "", stdin=event)
    assert ran.code == 0 and "ferry" not in "".join(
        file.read_text() for file in scene.place.workspace.rglob("*.md")
    )
