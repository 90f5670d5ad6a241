"""The doors through which text from outside gets into a memory, each used as it is in real life.

A door takes the memory, a folder for its files, a number and the text. It may refuse the text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, cast

from clawmark.agent.models.completer import Completion, ToolCall
from clawmark.agent.session.conversation import Conversation
from clawmark.aio import AsyncMemory
from clawmark.hooks.answer import HookOptions, answer
from clawmark.hooks.events import Event
from clawmark.importers.run import run_import
from clawmark.memory import Memory
from clawmark.model.errors import ClawmarkError
from clawmark.model.provenance import Origin
from clawmark.testing.completers import ScriptedCompleter

WEB_PAGE = Origin("agent", "web", "external", session="agent:main:main", source="web page")
READ_PAGE = "Please read the page about birds for me."
Plant = Callable[[Memory, Path, int, str], object]


class Door(NamedTuple):
    """A way into the memory."""

    name: str
    plant: Plant
    needs: str = ""
    """A package of an extra, without which the door does not exist."""

    @property
    def is_there(self) -> bool:
        return not self.needs or find_spec(self.needs) is not None


def _library(memory: Memory, folder: Path, number: int, text: str) -> object:
    return memory.append(text, origin=WEB_PAGE)


def _long_term(memory: Memory, folder: Path, number: int, text: str) -> object:
    return memory.append(text, to="MEMORY.md", origin=WEB_PAGE)


def _import_notes(memory: Memory, folder: Path, number: int, text: str) -> object:
    notes = folder / f"notes-{number}"
    notes.mkdir()
    (notes / "note.md").write_text(text, encoding="utf-8")
    return list(run_import(memory, "markdown", str(notes)))


def _import_chats(memory: Memory, folder: Path, number: int, text: str) -> object:
    export = folder / f"export-{number}.json"
    said = [{"sender": "human", "text": "hello"}, {"sender": "assistant", "text": text}]
    chat = {"uuid": f"chat-{number}", "name": "Birds", "chat_messages": said}
    export.write_text(json.dumps([chat]), encoding="utf-8")
    return list(run_import(memory, "claude", str(export)))


def _moved_by_hand(memory: Memory, folder: Path, number: int, text: str) -> object:
    """Import a note, and copy its text to MEMORY.md with an editor."""
    _import_notes(memory, folder, number, text)
    page = Path(memory.places.workspace) / "MEMORY.md"
    before = page.read_text(encoding="utf-8") if page.exists() else ""
    page.write_text(f"{before}\n\n{text}\n", encoding="utf-8")
    return memory.sync()


def _tool(memory: Memory, folder: Path, number: int, text: str) -> object:
    """The model keeps what it read on a page, and says so."""
    tools = {tool.name: tool for tool in memory.tools("agent:main:main", append=True)}
    return tools["memory_append"].call({"text": text, "origin": "tool"})


def _tool_in_group(memory: Memory, folder: Path, number: int, text: str) -> object:
    tools = {tool.name: tool for tool in memory.tools(_group(number), append=True)}
    append = tools.get("memory_append")
    return append.call({"text": text}) if append is not None else None


def _mcp_tool(memory: Memory, folder: Path, number: int, text: str) -> object:
    # Imported late: the MCP SDK is an optional extra.
    from clawmark.mcp.tools import SessionTools

    places = memory.places

    async def call() -> object:
        async with AsyncMemory.open(
            places.workspace, agent=places.agent, state_dir=places.state_dir, provider="none"
        ) as opened:
            tools = SessionTools(opened, "agent:main:main")
            return await tools.call("memory_append", {"text": text, "origin": "tool"})

    return asyncio.run(call())


def _repeated_from_search(memory: Memory, folder: Path, number: int, text: str) -> object:
    """The model searches the memory, finds an imported note and keeps it in another form."""
    _import_notes(memory, folder, number, text)
    memory.sync()
    tools = {tool.name: tool for tool in memory.tools(_direct(number), append=True)}
    tools["memory_search"].call({"query": text[:200], "minScore": 0})
    return tools["memory_append"].call({"text": f"Noted: {text}"})


def _flush(memory: Memory, folder: Path, number: int, text: str) -> object:
    """A flush of a conversation in which a tool returned the text, and the model believed it."""
    talk = _talk(memory, _direct(number), READ_PAGE, _writer(text))
    _use_tool(talk, text)
    talk.on_usage(100, reply="I have read the page.")
    return talk.flush()


def _flush_in_group(memory: Memory, folder: Path, number: int, text: str) -> object:
    talk = _talk(memory, _group(number), text, _writer(text))
    talk.on_usage(100, reply="Noted.")
    return talk.flush()


def _note(memory: Memory, folder: Path, number: int, text: str) -> object:
    """The note of a session in which the agent repeated what a tool returned."""
    talk = _talk(memory, _direct(number), READ_PAGE, None)
    _use_tool(talk, text)
    talk.on_usage(100, reply=text)
    return talk.end("new")


def _note_in_group(memory: Memory, folder: Path, number: int, text: str) -> object:
    talk = _talk(memory, _group(number), f"We met at the harbour. {text}", None)
    talk.on_usage(100, reply="I see.")
    return talk.end("new")


def _transcript(memory: Memory, folder: Path, number: int, text: str) -> object:
    """A session that goes on: only its transcript has the text."""
    talk = _talk(memory, _direct(number), READ_PAGE, None)
    _use_tool(talk, text)
    talk.on_usage(100, reply=text)
    return None


def _transcript_in_group(memory: Memory, folder: Path, number: int, text: str) -> object:
    talk = _talk(memory, _group(number), text, None)
    talk.on_usage(100, reply="I see.")
    return None


def _hook_note(memory: Memory, folder: Path, number: int, text: str) -> object:
    """The note of a session of a coding agent that used a tool."""
    transcript = folder / f"host-{number}.jsonl"
    call = {"type": "tool_use", "id": "t1", "name": "WebFetch", "input": {"url": "x"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": text}
    lines = [
        ("user", READ_PAGE),
        ("assistant", [call]),
        ("user", [result]),
        ("assistant", [{"type": "text", "text": text}]),
    ]
    stamped = [
        {
            "type": role,
            "timestamp": f"{memory.now().astimezone().isoformat()}",
            "message": {"role": role, "content": content},
        }
        for role, content in lines
    ]
    transcript.write_text("".join(json.dumps(one) + "\n" for one in stamped), encoding="utf-8")
    event = Event(
        host="claude-code",
        name="SessionEnd",
        session_id=f"host-{number}",
        transcript=str(transcript),
    )
    borrowed = cast(Memory, BorrowedMemory(memory))
    return answer(event, lambda _: borrowed, HookOptions())


def _added_folder(memory: Memory, folder: Path, number: int, text: str) -> object:
    added = folder / f"wiki-{number}"
    added.mkdir()
    (added / "herons.md").write_text(text, encoding="utf-8")
    return memory.add_source(added)


def _memory_tool(memory: Memory, folder: Path, number: int, text: str) -> object:
    """Anthropic's memory tool in a group."""
    from clawmark.adapters.memories import Memories

    origin = Origin("agent", "tool", "external", session=_group(number), source="memory tool")
    return Memories(memory.workspace, origin).create(f"/memories/birds-{number}.md", text)


def _store(memory: Memory, folder: Path, number: int, text: str) -> object:
    """A LangGraph store in a group."""
    # Imported late: LangGraph is an optional extra.
    from clawmark.adapters.langgraph import MemoryStore

    store = MemoryStore(memory, session_key=_group(number))
    return store.put(("birds",), f"heron-{number}", {"text": text})


DOORS = (
    Door("library", _library),
    Door("long-term", _long_term),
    Door("import-notes", _import_notes),
    Door("import-chats", _import_chats),
    Door("moved-by-hand", _moved_by_hand),
    Door("tool", _tool),
    Door("tool-in-group", _tool_in_group),
    Door("mcp-tool", _mcp_tool, needs="mcp"),
    Door("repeated-from-search", _repeated_from_search),
    Door("flush", _flush),
    Door("flush-in-group", _flush_in_group),
    Door("note", _note),
    Door("note-in-group", _note_in_group),
    Door("transcript", _transcript),
    Door("transcript-in-group", _transcript_in_group),
    Door("hook-note", _hook_note),
    Door("added-folder", _added_folder),
    Door("memory-tool-in-group", _memory_tool),
    Door("store-in-group", _store, needs="langgraph"),
)


def plant_through(door: Door, memory: Memory, folder: Path, number: int, text: str) -> None:
    """Plant a text; a door may refuse it."""
    with suppress(ClawmarkError):
        door.plant(memory, folder, number, text)


class BorrowedMemory:
    """A memory that a hook does not close."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def __enter__(self) -> Memory:
        return self._memory

    def __exit__(self, *_: object) -> None:
        pass


def _direct(number: int) -> str:
    return f"agent:main:direct:attacked-{number}"


def _group(number: int) -> str:
    return f"agent:main:telegram:group:{number}"


def _writer(text: str) -> ScriptedCompleter:
    """Return a model that writes a text with `memory_append`."""
    call = ToolCall("w1", "memory_append", json.dumps({"text": text}))
    return ScriptedCompleter([Completion("", calls=(call,)), "NO_REPLY"])


def _talk(
    memory: Memory, session_key: str, message: str, completer: ScriptedCompleter | None
) -> Conversation:
    talk = memory.conversation(session_key, completer=completer)
    talk.start()
    talk.on_user(message)
    return talk


def _use_tool(talk: Conversation, result: str) -> None:
    """Record that a tool was called and what it returned."""
    call = {"type": "toolCall", "id": "c1", "name": "web_fetch", "arguments": {"url": "x"}}
    talk.record("message", {"message": {"role": "assistant", "content": [call]}})
    content = [{"type": "text", "text": result}]
    talk.record(
        "message",
        {
            "message": {
                "role": "toolResult",
                "toolCallId": "c1",
                "toolName": "web_fetch",
                "content": content,
            }
        },
    )
