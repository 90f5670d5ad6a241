"""Anthropic's memory tool over a workspace: hand `MemoryTool(memory)` to the SDK's tool runner.

    client.beta.messages.tool_runner(model=…, messages=…, tools=[MemoryTool(memory)])

In: a memory, and the commands the SDK parsed. Out: the texts that SDK's own file tool answers with;
an error the model can mend is a `ToolError`. What the commands do is in `memories`. Needs the extra
`anthropic`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool

from clawmark.adapters.memories import Memories
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
    """The tool `memory` of `memory_20250818`, whose `/memories` is the workspace's folder `memory`."""

    def __init__(
        self, memory: Memory, *, cache_control: BetaCacheControlEphemeralParam | None = None
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._memories = Memories(memory.workspace)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        with _told():
            return self._memories.view(command.path, command.view_range)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        with _told():
            return self._memories.create(command.path, command.file_text)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        with _told():
            return self._memories.str_replace(command.path, command.old_str, command.new_str)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        with _told():
            return self._memories.insert(command.path, command.insert_line, command.insert_text)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        with _told():
            return self._memories.delete(command.path)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        with _told():
            return self._memories.rename(command.old_path, command.new_path)


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for the SDK's asynchronous client (on asyncio): a worker thread does what
    `MemoryTool` does.
    """

    def __init__(
        self, memory: Memory, *, cache_control: BetaCacheControlEphemeralParam | None = None
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = MemoryTool(memory)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return await _aside(partial(self._tool.view, command))

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return await _aside(partial(self._tool.create, command))

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        return await _aside(partial(self._tool.str_replace, command))

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        return await _aside(partial(self._tool.insert, command))

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return await _aside(partial(self._tool.delete, command))

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return await _aside(partial(self._tool.rename, command))


async def _aside(call: Callable[[], str]) -> str:
    return await asyncio.to_thread(call)


@contextmanager
def _told() -> Iterator[None]:
    """What goes wrong, as an error that the model reads."""
    try:
        yield
    except ClawmarkError as error:
        raise ToolError(" ".join(filter(None, (error.message, error.hint)))) from error
