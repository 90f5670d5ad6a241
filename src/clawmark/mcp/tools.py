"""The memory's tools as MCP tools: `memory_search`, `memory_get`, `memory_append`, `memory_status`.

A call answers with structured content and the same content as text. What a tool does, and for
which sessions, is decided in `clawmark.agent.tools`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from mcp_types import CallToolResult, TextContent, Tool, ToolAnnotations

from clawmark.agent.tools import Payload, render
from clawmark.agent.tools.base import one_line
from clawmark.aio import AsyncMemory
from clawmark.mcp.instructions import STATUS_TOOL, offers_status, session_access
from clawmark.model.errors import ClawmarkError
from clawmark.model.reports import Status

CALL_SECONDS = 30.0

_STATUS_DESCRIPTION = (
    "Report the state of your long-term memory: how many files are indexed, how many are still "
    "due, whether search works with vectors and keywords or with keywords alone, and what would "
    "make it better. Use it when memory_search found less than you expected, or when the user "
    "asks whether the memory works. It reads no notes."
)

_TEXT, _INTEGER, _NUMBER, _BOOLEAN = (
    {"type": name} for name in ("string", "integer", "number", "boolean")
)
_FLAGS = {"type": "array", "items": _TEXT}
_ERROR: Payload = {"error": _TEXT, "reason": _TEXT, "action": _TEXT}


class ToolInfo(NamedTuple):
    """The title of a tool, what it does to the memory, and the properties of its answers."""

    title: str
    writes: bool
    answer: Payload
    removes: bool = False


_RESULT: Payload = {
    "path": _TEXT,
    "startLine": _INTEGER,
    "endLine": _INTEGER,
    "score": _NUMBER,
    "vectorScore": _NUMBER,
    "textScore": _NUMBER,
    "snippet": _TEXT,
    "source": _TEXT,
    "corpus": _TEXT,
    "provenance": {
        "type": "object",
        "properties": {"originClass": _TEXT, "sessionKind": _TEXT, "observedAt": _INTEGER},
    },
    "citation": _TEXT,
    "modality": _TEXT,
    "mime": _TEXT,
    "flags": _FLAGS,
    "trust": _TEXT,
    "space": _TEXT,
    "author": _TEXT,
}
TOOLS: dict[str, ToolInfo] = {
    "memory_search": ToolInfo(
        "Search memory",
        False,
        {
            "results": {"type": "array", "items": {"type": "object", "properties": _RESULT}},
            "provider": _TEXT,
            "model": _TEXT,
            "citations": _TEXT,
            "mode": _TEXT,
            "nothing": {
                "type": "object",
                "properties": {"code": _TEXT, "message": _TEXT, "bestScore": _NUMBER},
            },
            "fallback": {"type": "object", "properties": {"from": _TEXT, "reason": _TEXT}},
            "degraded": {"type": "object", "properties": {"reason": _TEXT, "fix": _TEXT}},
            "dueFiles": {"type": ["integer", "null"]},
            "asOf": _TEXT,
            "version": {"type": "object", "properties": {"id": _TEXT, "recorded": _TEXT}},
            "disabled": _BOOLEAN,
            "unavailable": _BOOLEAN,
            "warning": _TEXT,
            "corpora": {
                "type": "array",
                "items": {"type": "object", "properties": {"corpus": _TEXT, "outcome": _TEXT}},
            },
        },
    ),
    "memory_get": ToolInfo(
        "Read memory",
        False,
        {
            "status": _TEXT,
            "code": _TEXT,
            "text": _TEXT,
            "path": _TEXT,
            "from": _INTEGER,
            "lines": _INTEGER,
            "truncated": _BOOLEAN,
            "nextFrom": _INTEGER,
            "mime": _TEXT,
            "asOf": _TEXT,
            "note": _TEXT,
            "trust": _TEXT,
            "warning": _TEXT,
            "unavailable": _BOOLEAN,
        },
    ),
    "memory_append": ToolInfo(
        "Add to memory",
        True,
        {
            "written": _BOOLEAN,
            "path": _TEXT,
            "startLine": _INTEGER,
            "endLine": _INTEGER,
            "citation": _TEXT,
            "flags": _FLAGS,
            "proposal": _TEXT,
            "note": _TEXT,
            "space": _TEXT,
            "author": _TEXT,
        },
    ),
    "memory_recall": ToolInfo("Recall from memory", writes=False, answer={}),
    "memory_store": ToolInfo("Store in memory", writes=True, answer={}),
    "memory_forget": ToolInfo(
        "Forget",
        True,
        {
            "forgotten": {"type": ["boolean", "string"]},  # memory-lancedb returns the text
            "citations": {"type": "array", "items": _TEXT},
            "files": _INTEGER,
            "found": _INTEGER,
            "id": _TEXT,
            "candidates": {"type": "array", "items": {"type": "object"}},
            "text": _TEXT,
            "degraded": {"type": "object", "properties": {"reason": _TEXT, "fix": _TEXT}},
        },
        removes=True,
    ),
    STATUS_TOOL: ToolInfo(
        "State of the memory",
        False,
        {
            "files": _INTEGER,
            "chunks": _INTEGER,
            "dueFiles": _INTEGER,
            "dueVectors": _INTEGER,
            "skippedFiles": _INTEGER,
            "mode": _TEXT,
            "embedder": _TEXT,
            "rebuilding": _BOOLEAN,
            "degraded": {"type": "object", "properties": {"reason": _TEXT, "fix": _TEXT}},
        },
    ),
}
"""No property is required: an error has an `error` and an `action` instead."""

Call = Callable[[object], Awaitable[Payload]]


class SessionTools:
    """The tools of one session."""

    def __init__(self, memory: AsyncMemory, session_key: str | None, chat_type: str = "") -> None:
        self._calls: dict[str, Call] = {}
        self.tools: list[Tool] = []
        for tool in memory.tools(session_key, append=True, chat_type=chat_type):
            self._add(tool.name, tool.description, tool.parameters, tool.call)
        access = session_access(memory, session_key, chat_type)
        if memory.settings.plugins.has_memory and offers_status(memory, access):
            self._add(
                STATUS_TOOL,
                _STATUS_DESCRIPTION,
                {"type": "object", "properties": {}},
                _status_call(memory),
            )

    async def call(self, name: str, arguments: Mapping[str, object] | None) -> CallToolResult:
        """Call a tool; every error, an unknown name included, is an answer the model can read."""
        call = self._calls.get(name)
        try:
            payload = (
                await asyncio.wait_for(call(arguments or {}), CALL_SECONDS)
                if call is not None
                else self._unknown(name)
            )
        except TimeoutError:
            problem = f"{name} did not answer within {CALL_SECONDS:.0f} seconds."
            payload = {
                "error": problem,
                "action": "Try again; `clawmark status` shows what the memory is busy with.",
            }
        return CallToolResult(
            content=[TextContent(type="text", text=render(payload))],
            structured_content=encodable(payload),
            is_error="error" in payload,
        )

    def _unknown(self, name: str) -> Payload:
        return {
            "error": f"There is no tool {one_line(name, 80)}.",
            "action": f"Use one of {', '.join(self._calls)}."
            if self._calls
            else "This session has no tools; answer from this conversation alone.",
        }

    def _add(self, name: str, description: str, parameters: Payload, call: Call) -> None:
        info = TOOLS.get(name) or _plugin_tool(name)
        self._calls[name] = call
        self.tools.append(
            Tool(
                name=name,
                title=info.title,
                description=description,
                input_schema=parameters,
                output_schema={"type": "object", "properties": {**info.answer, **_ERROR}},
                annotations=ToolAnnotations(
                    title=info.title,
                    read_only_hint=not info.writes,
                    destructive_hint=info.removes,
                    idempotent_hint=not info.writes,
                    open_world_hint=False,
                ),
            )
        )


def _plugin_tool(name: str) -> ToolInfo:
    """Return what is known about the tool of a memory plugin: it may write and remove."""
    title = name.replace("_", " ").capitalize()
    return ToolInfo(title, writes=True, answer={}, removes=True)


def encodable(value: object) -> object:
    """Escape text that UTF-8 cannot encode, such as the undecodable bytes of a file name."""
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode("utf-8")
        case Mapping():
            return {str(key): encodable(inner) for key, inner in value.items()}
        case list() | tuple():
            return [encodable(inner) for inner in value]
        case _:
            return value


def _status_call(memory: AsyncMemory) -> Call:
    async def call(_: object) -> Payload:
        try:
            return status_payload(await memory.status())
        except ClawmarkError as error:
            return {
                "error": error.message,
                "action": error.hint or "Run `clawmark doctor` to see what is wrong.",
            }

    return call


def status_payload(status: Status) -> Payload:
    """Return the part of the status that is useful to a model; paths are left out."""
    payload: Payload = {
        "files": status.files,
        "chunks": status.chunks,
        "dueFiles": status.due_files,
        "dueVectors": status.due_vectors,
        "mode": status.mode,
        "embedder": status.embedder,
        "rebuilding": status.rebuilding,
        "skippedFiles": len(status.skipped),
    }
    if status.degraded is not None:
        payload["degraded"] = {"reason": status.degraded.reason, "fix": status.degraded.fix}
    return payload
