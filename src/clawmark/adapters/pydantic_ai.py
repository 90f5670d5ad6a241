"""Pydantic AI: the memory's tools as a toolset.

    agent = Agent("openai:gpt-4o-mini", toolsets=[memory_toolset(memory)])

The instructions of the toolset are the memory's part of the system prompt, rebuilt for every run.
Needs the extra `pydantic-ai`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pydantic_ai import FunctionToolset, Tool

from clawmark.agent.tools import Tool as MemoryTool
from clawmark.memory import Memory

if TYPE_CHECKING:
    from pydantic_ai import FunctionToolset, Tool


def memory_toolset(
    memory: Memory,
    session_key: str | None = None,
    *,
    append: bool = True,
    instructions: bool = True,
) -> FunctionToolset[Any]:
    """Return `memory_search`, `memory_get` and, unless `append` is off, `memory_append`.

    With `instructions`, the toolset includes the memory's system prompt."""

    async def prompt() -> str:
        return (await asyncio.to_thread(memory.prompt, session_key, append=append)).text

    tools = [_make_tool(tool) for tool in memory.tools(session_key, append=append)]
    return FunctionToolset(tools, id="clawmark", instructions=prompt if instructions else None)


def _make_tool(tool: MemoryTool) -> Tool[Any]:
    async def call(**arguments: Any) -> dict[str, object]:
        return await asyncio.to_thread(tool.call, arguments)

    return Tool.from_schema(call, tool.name, tool.description, tool.parameters)
