"""The OpenAI Agents SDK: the memory's function tools, and a session whose history is a transcript.

    instructions = memory.prompt(append=True).text
    agent = Agent(name="assistant", instructions=instructions, tools=memory_tools(memory))
    await Runner.run(agent, "Hello", session=TranscriptSession(memory, "carla"))

A session is a transcript in OpenClaw's format, searchable like the agent's other transcripts. It
calls the lifecycle hooks of memory plugins: `session_start` when it is first used, `agent_end` when
an answer is added, `session_end` when it is cleared. Needs the extra `openai-agents`."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from agents import FunctionTool

from clawmark.adapters.plain import Toolbox
from clawmark.adapters.transcripts import open_transcript, transcript_path
from clawmark.memory import Memory
from clawmark.model.errors import WorkspaceError
from clawmark.text.chunking.tokens import well_formed
from clawmark.text.transcripts.records import parse_line

if TYPE_CHECKING:
    from agents import FunctionTool, SessionSettings, TResponseInputItem
    from agents.tool_context import ToolContext

_MAKER = "openai-agents"


def memory_tools(
    memory: Memory, session_key: str | None = None, *, append: bool = True
) -> list[FunctionTool]:
    """Return `memory_search`, `memory_get` and, unless `append` is off, `memory_append`."""
    box = Toolbox(memory, session_key, append=append)

    def made(name: str, description: str, parameters: dict[str, Any]) -> FunctionTool:
        async def invoke(context: ToolContext[Any], arguments: str) -> str:
            return await asyncio.to_thread(box.call, name, arguments)

        # Strict schemas do not allow optional arguments.
        return FunctionTool(name, description, parameters, invoke, strict_json_schema=False)

    return [made(tool.name, tool.description, tool.parameters) for tool in box.tools]


class _Line(NamedTuple):
    """One item of the history and the byte offset of its line."""

    start: int
    item: TResponseInputItem


class TranscriptSession:
    """A `Session` of the SDK, stored in `<session id>.jsonl`; continues an earlier one of that id.

    Every item is a line of its own, on disk when `add_items` returns. `pop_item` removes the last
    line. `clear_session` archives the file as OpenClaw does (`….jsonl.reset.<time>`), where it can
    still be searched."""

    def __init__(
        self,
        memory: Memory,
        session_id: str,
        *,
        session_settings: SessionSettings | None = None,
        session_key: str | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self.path = transcript_path(memory, session_id)
        self._memory = memory
        self._lock = threading.Lock()
        self._session_key = session_key
        self._is_started = False

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the history, or its last `limit` items, oldest first."""
        await asyncio.to_thread(self._start)
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        lines = await asyncio.to_thread(self._lines)
        start = 0 if limit is None else max(0, len(lines) - max(0, limit))
        return [line.item for line in lines[start:]]

    async def add_items(self, items: Sequence[TResponseInputItem]) -> None:
        """Add to the history."""
        await asyncio.to_thread(self._start)
        await asyncio.to_thread(self._add, list(items))
        if items and _message(items[-1])[0] == "assistant":
            await asyncio.to_thread(self._end_turn)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the last item; None if there is none."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Archive the history and start a new one."""
        await asyncio.to_thread(self._clear)
        await asyncio.to_thread(self._memory.lifecycle(self._session_key).session_end)
        self._is_started = False

    def _start(self) -> None:
        with self._lock:
            is_first, self._is_started = not self._is_started, True
        if is_first:
            self._memory.lifecycle(self._session_key).session_start()

    def _end_turn(self) -> None:
        """Report the last message of the user and what follows it to the memory plugins."""
        messages = [_message(line.item) for line in self._lines()]
        starts = [number for number, (role, text) in enumerate(messages) if role == "user" and text]
        if starts:
            turn = [message for message in messages[starts[-1] :] if message[1]]
            self._memory.lifecycle(self._session_key).agent_end(turn)

    def _add(self, items: list[TResponseInputItem]) -> None:
        with self._lock:
            transcript = open_transcript(self._memory, self.session_id)
            for item in items:
                role, text = _message(item)
                if text:
                    content = [{"type": "text", "text": well_formed(text)}]
                    message = {"role": role, "content": content}
                    transcript.add_record("message", {"message": message, "item": item})
                else:
                    transcript.add_record("custom", {"customType": _MAKER, "item": item})

    def _lines(self) -> list[_Line]:
        """Return the items; incomplete lines and lines of other programs are ignored."""
        try:
            with open(self.path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unusable(self.path, error) from error
        found, start = [], 0
        for line in data.splitlines(keepends=True):
            item = parse_line(line.decode("utf-8", "replace")).get("item")
            if isinstance(item, dict):
                found.append(_Line(start, item))  # type: ignore[arg-type,unused-ignore]
            start += len(line)
        return found

    def _pop(self) -> TResponseInputItem | None:
        with self._lock:
            lines = self._lines()
            if not lines:
                return None
            try:
                with open(self.path, "r+b") as file:
                    file.truncate(lines[-1].start)
                    os.fsync(file.fileno())
            except OSError as error:
                raise _unusable(self.path, error) from error
            return lines[-1].item

    def _clear(self) -> None:
        with self._lock:
            time = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S.%f")[:-3]
            try:
                os.replace(self.path, f"{self.path}.reset.{time}Z")
            except FileNotFoundError:
                return
            except OSError as error:
                raise _unusable(self.path, error) from error


def _message(item: Mapping[str, Any] | TResponseInputItem) -> tuple[str, str]:
    """Return role and text of a message; an empty text for other items."""
    role, content = str(item.get("role")), item.get("content")
    if role not in ("user", "assistant"):
        return role, ""
    if isinstance(content, list):
        content = "".join(
            part["text"]
            for part in content
            if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return role, content if isinstance(content, str) and content.strip() else ""


def _unusable(path: str, error: OSError) -> WorkspaceError:
    return WorkspaceError(
        f"The transcript {path} cannot be used: {error.strerror or type(error).__name__}.",
        hint="Check the state folder and its disk.",
    )
