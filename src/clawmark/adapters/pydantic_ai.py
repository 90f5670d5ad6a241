"""Pydantic AI: the memory's tools as a toolset.

    agent = Agent("openai:gpt-4o-mini", toolsets=[memory_toolset(memory)])

The instructions of the toolset are the memory's part of the system prompt, rebuilt for every run,
with what a memory plugin recalls for the message of the user. `end_run` reports a finished run to
the plugin:

    result = await agent.run("Hello")
    await end_run(memory, result)

Needs the extra `pydantic-ai`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic_ai import FunctionToolset, RunContext, Tool
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, UserPromptPart

from clawmark.agent.tools import Tool as MemoryTool
from clawmark.memory import Memory

if TYPE_CHECKING:
    from pydantic_ai import FunctionToolset, Tool
    from pydantic_ai.run import AgentRunResult


def memory_toolset(
    memory: Memory,
    session_key: str | None = None,
    *,
    append: bool = True,
    instructions: bool = True,
) -> FunctionToolset[Any]:
    """Return `memory_search`, `memory_get` and, unless `append` is off, `memory_append`.

    With `instructions`, the toolset includes the memory's system prompt."""

    async def prompt(context: RunContext[Any]) -> str:
        text = (await asyncio.to_thread(memory.prompt, session_key, append=append)).text
        if not memory.slot.slot.recalls_automatically or not isinstance(context.prompt, str):
            return text
        recalled = await asyncio.to_thread(memory.recall, context.prompt, session_key)
        return f"{text}\n\n{recalled}" if recalled else text

    tools = [_make_tool(tool) for tool in memory.tools(session_key, append=append)]
    return FunctionToolset(tools, id="clawmark", instructions=prompt if instructions else None)


async def end_run(
    memory: Memory, result: AgentRunResult[Any], session_key: str | None = None
) -> None:
    """Call the hook `agent_end` of the memory plugin with the messages of a finished run."""
    hooks = memory.lifecycle(session_key)
    await asyncio.to_thread(hooks.agent_end, _texts(result.new_messages()))


def _texts(messages: Sequence[ModelMessage]) -> list[tuple[str, str]]:
    """Return what the user and the model said; tool calls and their results are left out."""
    found: list[tuple[str, str]] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            found.append(("assistant", message.text or ""))
        elif isinstance(message, ModelRequest):
            found += [
                ("user", part.content)
                for part in message.parts
                if isinstance(part, UserPromptPart) and isinstance(part.content, str)
            ]
    return found


def _make_tool(tool: MemoryTool) -> Tool[Any]:
    async def call(**arguments: Any) -> dict[str, object]:
        return await asyncio.to_thread(tool.call, arguments)

    return Tool.from_schema(call, tool.name, tool.description, tool.parameters)
