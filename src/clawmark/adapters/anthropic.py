"""Anthropic's memory tool over a workspace, for the tool runner of the SDK.

    client.beta.messages.tool_runner(model=…, messages=…, tools=[MemoryTool(memory)])

The answers are those of the SDK's own file tool; an error that the model can correct is a
`ToolError`. Needs the extra `anthropic`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool

from clawmark import composition
from clawmark.adapters.memories import Memories
from clawmark.agent.tools.policy import tool_origin
from clawmark.composition.agent import session_access
from clawmark.memory import Memory
from clawmark.model.errors import ClawmarkError

if TYPE_CHECKING:
    from anthropic.types.beta import (
        BetaCacheControlEphemeralParam,
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )


class MemoryTool(BetaAbstractMemoryTool):
    """The tool `memory` of `memory_20250818`; its `/memories` is the folder `memory`."""

    def __init__(
        self,
        memory: Memory,
        *,
        cache_control: BetaCacheControlEphemeralParam | None = None,
        session_key: str | None = None,
    ) -> None:
        """`session_key` is recorded with what the model writes; None for no session."""
        super().__init__(cache_control=cache_control)
        composition.require_index(memory.settings)  # an empty memory slot has no tools
        access = session_access(memory.settings, session_key)
        self._memories = Memories(memory.workspace, tool_origin(access, session_key, "memory"))

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        with _tool_errors():
            return self._memories.view(command.path, command.view_range)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        with _tool_errors():
            return self._memories.create(command.path, command.file_text)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        with _tool_errors():
            return self._memories.str_replace(command.path, command.old_str, command.new_str)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        with _tool_errors():
            return self._memories.insert(command.path, command.insert_line, command.insert_text)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        with _tool_errors():
            return self._memories.delete(command.path)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        with _tool_errors():
            return self._memories.rename(command.old_path, command.new_path)


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for the SDK's asynchronous client, in worker threads."""

    def __init__(
        self,
        memory: Memory,
        *,
        cache_control: BetaCacheControlEphemeralParam | None = None,
        session_key: str | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = MemoryTool(memory, session_key=session_key)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return await asyncio.to_thread(self._tool.view, command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return await asyncio.to_thread(self._tool.create, command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        return await asyncio.to_thread(self._tool.str_replace, command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        return await asyncio.to_thread(self._tool.insert, command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return await asyncio.to_thread(self._tool.delete, command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return await asyncio.to_thread(self._tool.rename, command)


@contextmanager
def _tool_errors() -> Iterator[None]:
    """Convert errors to ones that the model reads."""
    try:
        yield
    except ClawmarkError as error:
        raise ToolError(" ".join(filter(None, (error.message, error.hint)))) from error
