"""The OpenAI Agents SDK: the memory's function tools, and a session whose history is a transcript.

    agent = Agent(name="assistant", instructions=memory.prompt(append=True).text, tools=memory_tools(memory))
    await Runner.run(agent, "Hello", session=TranscriptSession(memory, "carla"))

In: a memory. Out: what `Agent(tools=…)` and `Runner.run(session=…)` take. A session is one JSONL
file in OpenClaw's format beside the agent's other conversations, so that what was said in it can be
searched like theirs. Needs the extra `openai-agents`."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from clawmark.adapters.plain import Toolbox
from clawmark.adapters.transcripts import open_log, transcript_path
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
    """`memory_search`, `memory_get` and, unless `append` is off, `memory_append` as function tools."""
    from agents import FunctionTool

    box = Toolbox(memory, session_key, append=append)

    def made(name: str, description: str, parameters: dict[str, Any]) -> FunctionTool:
        async def invoke(context: ToolContext[Any], arguments: str) -> str:
            return await asyncio.to_thread(box.call, name, arguments)

        # Strict schemas have no optional arguments, and ours have: whoever leaves them out gets
        # what is configured.
        return FunctionTool(name, description, parameters, invoke, strict_json_schema=False)

    return [made(tool.name, tool.description, tool.parameters) for tool in box.tools]


class _Line(NamedTuple):
    """One item of the history, and where its line begins in the file."""

    start: int
    item: TResponseInputItem


class TranscriptSession:
    """A `Session` of the SDK, kept in `<session id>.jsonl`; it goes on where an earlier one of that
    id ended.

    Every item stands on a line of its own, on disk when `add_items` returns. `pop_item` takes the
    last line away. `clear_session` sets the file aside as OpenClaw does (`….jsonl.reset.<time>`):
    the next item begins another, and what was said can still be found."""

    def __init__(
        self, memory: Memory, session_id: str, *, session_settings: SessionSettings | None = None
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self.path = transcript_path(memory, session_id)
        self._memory = memory
        self._turn = threading.Lock()

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The history, oldest first; the last `limit` items of it when that is given."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        lines = await asyncio.to_thread(self._lines)
        return [
            line.item
            for line in (lines if limit is None else lines[max(0, len(lines) - max(0, limit)) :])
        ]

    async def add_items(self, items: Sequence[TResponseInputItem]) -> None:
        """Add to the history."""
        await asyncio.to_thread(self._add, list(items))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the last item away; None when there is none."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Begin anew."""
        await asyncio.to_thread(self._clear)

    def _add(self, items: list[TResponseInputItem]) -> None:
        with self._turn:
            log = open_log(self._memory, self.session_id)
            for item in items:
                said = _said(item)
                if said is None:
                    log.add_record("custom", {"customType": _MAKER, "item": item})
                else:
                    role, text = said
                    message = {
                        "role": role,
                        "content": [{"type": "text", "text": well_formed(text)}],
                    }
                    log.add_record("message", {"message": message, "item": item})

    def _lines(self) -> list[_Line]:
        """The items; a line that a crash cut off is none, nor is one that others wrote."""
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
        with self._turn:
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
        with self._turn:
            time = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S.%f")[:-3]
            try:
                os.replace(self.path, f"{self.path}.reset.{time}Z")
            except FileNotFoundError:
                return
            except OSError as error:
                raise _unusable(self.path, error) from error


def _said(
    item: Mapping[str, Any] | TResponseInputItem,
) -> tuple[Literal["user", "assistant"], str] | None:
    """Who said what, for an item that is a message of the user or the agent."""
    role, content = item.get("role"), item.get("content")
    if role not in ("user", "assistant"):
        return None
    if isinstance(content, list):
        content = "".join(
            part["text"]
            for part in content
            if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return (role, content) if isinstance(content, str) and content.strip() else None


def _unusable(path: str, error: OSError) -> WorkspaceError:
    return WorkspaceError(
        f"The transcript {path} cannot be used: {error.strerror or type(error).__name__}.",
        hint="Check the state folder and its disk.",
    )
