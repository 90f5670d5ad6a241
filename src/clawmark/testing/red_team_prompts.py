"""Every place in Clawmark where memory is put into a prompt that no model asked for.

Each function returns what a model is sent for a message of the user, in a new session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import count
from typing import NamedTuple, cast

from clawmark.agent.notes.curate import propose
from clawmark.chat.chat import Chat, ChatCallbacks
from clawmark.chat.history import Answer
from clawmark.hooks.answer import HookOptions, answer
from clawmark.hooks.events import Event
from clawmark.mcp.instructions import session_instructions
from clawmark.memory import Memory
from clawmark.testing.completers import ScriptedCompleter
from clawmark.testing.red_team_doors import BorrowedMemory

KEY = "agent:main:main"
HEARTBEAT = f"{KEY}:heartbeat"
_numbers = count(1)


class PromptBuilder(NamedTuple):
    """A place where memory is put into a prompt."""

    name: str
    build: Callable[[Memory, str], Sequence[str]]
    needs: str = ""
    """A package of an extra, without which it does not exist."""
    shows_memory: bool = True

    @property
    def is_there(self) -> bool:
        return not self.needs or find_spec(self.needs) is not None


def _system_prompt(memory: Memory, message: str) -> list[str]:
    modes = [memory.prompt(KEY, append=True, mode=mode).text for mode in ("full", "minimal")]
    return [*modes, memory.prompt(None).text, memory.prompt(_new_session()).text]


def _heartbeat_session(memory: Memory, message: str) -> list[str]:
    return [memory.prompt(HEARTBEAT, append=True).text]


def _recall(memory: Memory, message: str) -> list[str]:
    return [memory.recall(message, KEY), memory.recall(message)]


def _recall_by_score(memory: Memory, message: str) -> list[str]:
    return [memory.recall(message, KEY, max_results=50, min_score=0.0)]


def _conversation(memory: Memory, message: str) -> list[str]:
    talk = memory.conversation(_new_session(), append=True, recall=True)
    started = talk.start()
    turn = talk.on_user(message)
    return [started, turn.system, turn.recalled]


def _lifecycle(memory: Memory, message: str) -> list[str]:
    return [memory.lifecycle(KEY).before_agent_start(message)]


def _hook(name: str) -> Callable[[Memory, str], list[str]]:
    def build(memory: Memory, message: str) -> list[str]:
        def opened(provider: str | None) -> Memory:
            return cast(Memory, BorrowedMemory(memory))

        event = Event(host="claude-code", name=name, prompt=message)
        return [str(answer(event, opened, HookOptions()))]

    return build


def _flush(memory: Memory, message: str) -> list[str]:
    """The turn before a compaction, in a session where only the user has said something."""
    model = ScriptedCompleter(["NO_REPLY"])
    talk = memory.conversation(_new_session(), completer=model)
    talk.on_user(message)
    talk.on_usage(100, reply="I do not know.")
    talk.flush()
    return _requests(model)


def _note_name(memory: Memory, message: str) -> list[str]:
    """The request for the name of a session note, and the name."""
    model = ScriptedCompleter(["a-name"])
    talk = memory.conversation(_new_session(), completer=model)
    talk.on_user(f"{message} We decided to look tomorrow at noon.")
    talk.on_usage(100, reply="We will look tomorrow at noon.")
    return [str(talk.end("new")), *_requests(model)]


def _curation(memory: Memory, message: str) -> list[str]:
    model = ScriptedCompleter(["done"])
    parts = memory.conversation(KEY).parts
    propose(model, parts.workspace, parts.redactor, memory.today(), 7, gate=parts.gate)
    return _requests(model)


def _heartbeat(memory: Memory, message: str) -> list[str]:
    model = ScriptedCompleter(["HEARTBEAT_OK"])
    memory.heartbeat(completer=model, force=True)
    return _requests(model)


def _mcp(memory: Memory, message: str) -> list[str]:
    return [session_instructions(memory, KEY), session_instructions(memory, None)]


def _chat(memory: Memory, message: str) -> list[str]:
    sent: list[str] = []

    class Agent:
        def answer(self, system: str, history: Sequence[object], text: str, *_: object) -> object:
            sent.extend([system, text, *map(str, history)])
            return Answer("I see.", (), 10)

    talk = memory.conversation(_new_session(), append=True, recall=True)
    chat = Chat(memory, Agent(), talk)  # type: ignore[arg-type]
    chat.start()
    chat.say(message, ChatCallbacks(lambda _: None, lambda *_: None, lambda _: None))
    return sent


def _pydantic_ai(memory: Memory, message: str) -> list[str]:
    # Imported late: these SDKs are optional extras.
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from clawmark.adapters.pydantic_ai import memory_toolset

    sent: list[str] = []

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        sent.extend([str(messages), info.instructions or ""])
        return ModelResponse(parts=[TextPart("I see.")])

    agent = Agent(FunctionModel(reply), toolsets=[memory_toolset(memory)])
    asyncio.run(agent.run(message))
    return sent


def _llama_index(memory: Memory, message: str) -> list[str]:
    from llama_index.core.base.llms.types import ChatMessage, MessageRole

    from clawmark.adapters.llama_index import ClawmarkMemoryBlock

    block = ClawmarkMemoryBlock(memory=memory)
    said = ChatMessage(role=MessageRole.USER, content=message)
    return [asyncio.run(block.aget([said]))]


PROMPTS = (
    PromptBuilder("system-prompt", _system_prompt),
    PromptBuilder("heartbeat-session", _heartbeat_session),
    PromptBuilder("recall", _recall),
    PromptBuilder("recall-by-score", _recall_by_score),
    PromptBuilder("conversation", _conversation),
    PromptBuilder("lifecycle-hook", _lifecycle),
    PromptBuilder("session-start-hook", _hook("SessionStart")),
    PromptBuilder("user-prompt-hook", _hook("UserPromptSubmit")),
    PromptBuilder("flush", _flush),
    PromptBuilder("note-name", _note_name, shows_memory=False),
    PromptBuilder("curation", _curation),
    PromptBuilder("heartbeat", _heartbeat),
    PromptBuilder("mcp-instructions", _mcp, shows_memory=False),
    PromptBuilder("chat", _chat),
    PromptBuilder("pydantic-ai", _pydantic_ai, needs="pydantic_ai"),
    PromptBuilder("llama-index", _llama_index, needs="llama_index"),
)


def _new_session() -> str:
    return f"agent:main:direct:reader-{next(_numbers)}"


def _requests(model: ScriptedCompleter) -> list[str]:
    return [
        "\n\n".join([one.system, *(message.text for message in one.messages)])
        for one in model.requests
    ]
