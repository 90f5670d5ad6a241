"""Pydantic AI: the memory's tools as a toolset.

    agent = Agent("openai:gpt-4o-mini", toolsets=[memory_toolset(memory)])

In: a memory. Out: a `FunctionToolset` whose instructions are the memory's part of the system
prompt, made anew for every run. What the tools do is in `clawmark.agent.tools`. Needs the extra
`pydantic-ai`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

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
    """`memory_search`, `memory_get` and, unless `append` is off, `memory_append`, for one session.

    With `instructions` the toolset also brings the memory's system prompt; turn it off when the
    host has its own."""
    from pydantic_ai import FunctionToolset

    async def prompt() -> str:
        return (await asyncio.to_thread(memory.prompt, session_key, append=append)).text

    tools = [_made(tool) for tool in memory.tools(session_key, append=append)]
    return FunctionToolset(tools, id="clawmark", instructions=prompt if instructions else None)


def _made(tool: MemoryTool) -> Tool[Any]:
    from pydantic_ai import Tool

    async def call(**arguments: Any) -> dict[str, object]:
        return await asyncio.to_thread(tool.call, arguments)

    return Tool.from_schema(call, tool.name, tool.description, tool.parameters)
