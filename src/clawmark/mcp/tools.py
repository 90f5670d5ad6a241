"""The memory's tools as MCP tools: `memory_search`, `memory_get`, `memory_append` and
`memory_status`.

In: an open memory and a session key. Out: the list of tools with their annotations and answer
schemas, and a call that answers with structured content and the same as text. What a tool does, and
whom it answers, is left to `clawmark.agent.tools`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from mcp_types import CallToolResult, TextContent, Tool, ToolAnnotations

from clawmark.agent.tools import Payload, render
from clawmark.agent.tools.base import one_line
from clawmark.aio import AsyncMemory
from clawmark.mcp.instructions import STATUS_TOOL
from clawmark.model.errors import ClawmarkError
from clawmark.model.reports import Status

CALL_SECONDS = 30.0

_STATUS_DESCRIPTION = """\
Report the state of your long-term memory: how many files are indexed, how many are still due, whether search works with \
vectors and keywords or with keywords alone, and what would make it better. Use it when memory_search found less than you \
expected, or when the user asks whether the memory works. It reads no notes."""

_TEXT, _WHOLE, _YES = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
_FLAGS = {"type": "array", "items": _TEXT}
_PROBLEM: Payload = {"error": _TEXT, "reason": _TEXT, "action": _TEXT}


class Offer(NamedTuple):
    """How a tool is presented: its title, what it does to the world, and what its answers hold."""

    title: str
    writes: bool
    answer: Payload


_RESULT: Payload = {
    "path": _TEXT,
    "startLine": _WHOLE,
    "endLine": _WHOLE,
    "score": {"type": "number"},
    "vectorScore": {"type": "number"},
    "textScore": {"type": "number"},
    "snippet": _TEXT,
    "source": _TEXT,
    "corpus": _TEXT,
    "provenance": {
        "type": "object",
        "properties": {"originClass": _TEXT, "sessionKind": _TEXT, "observedAt": _WHOLE},
    },
    "citation": _TEXT,
    "flags": _FLAGS,
}
OFFERS: dict[str, Offer] = {
    "memory_search": Offer(
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
                "properties": {"code": _TEXT, "message": _TEXT, "bestScore": {"type": "number"}},
            },
            "fallback": {"type": "object", "properties": {"from": _TEXT, "reason": _TEXT}},
            "degraded": {"type": "object", "properties": {"reason": _TEXT, "fix": _TEXT}},
            "dueFiles": {"type": ["integer", "null"]},
            "disabled": _YES,
            "unavailable": _YES,
            "warning": _TEXT,
            "corpora": {
                "type": "array",
                "items": {"type": "object", "properties": {"corpus": _TEXT, "outcome": _TEXT}},
            },
        },
    ),
    "memory_get": Offer(
        "Read memory",
        False,
        {
            "status": _TEXT,
            "code": _TEXT,
            "text": _TEXT,
            "path": _TEXT,
            "from": _WHOLE,
            "lines": _WHOLE,
            "truncated": _YES,
            "nextFrom": _WHOLE,
            "note": _TEXT,
            "warning": _TEXT,
            "unavailable": _YES,
        },
    ),
    "memory_append": Offer(
        "Add to memory",
        True,
        {
            "written": _YES,
            "path": _TEXT,
            "startLine": _WHOLE,
            "endLine": _WHOLE,
            "citation": _TEXT,
            "flags": _FLAGS,
        },
    ),
    STATUS_TOOL: Offer(
        "State of the memory",
        False,
        {
            "files": _WHOLE,
            "chunks": _WHOLE,
            "dueFiles": _WHOLE,
            "dueVectors": _WHOLE,
            "skippedFiles": _WHOLE,
            "mode": _TEXT,
            "embedder": _TEXT,
            "rebuilding": _YES,
            "degraded": {"type": "object", "properties": {"reason": _TEXT, "fix": _TEXT}},
        },
    ),
}
"""No key is required in an answer: a refusal has an `error` and an `action` in their place."""

Call = Callable[[object], Awaitable[Payload]]


class Toolbox:
    """The tools of one session."""

    def __init__(self, memory: AsyncMemory, session_key: str | None) -> None:
        self._calls: dict[str, Call] = {}
        self.tools: list[Tool] = []
        for tool in memory.tools(session_key, append=True):
            self._add(tool.name, tool.description, tool.parameters, tool.call)
        self._add(
            STATUS_TOOL,
            _STATUS_DESCRIPTION,
            {"type": "object", "properties": {}},
            _status_call(memory),
        )

    async def call(self, name: str, arguments: Mapping[str, object] | None) -> CallToolResult:
        """Call a tool; whatever goes wrong, a wrong name too, is an answer the model can read."""
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
            "action": f"Use one of {', '.join(self._calls)}.",
        }

    def _add(self, name: str, description: str, parameters: Payload, call: Call) -> None:
        offer = OFFERS[name]
        self._calls[name] = call
        self.tools.append(
            Tool(
                name=name,
                title=offer.title,
                description=description,
                input_schema=parameters,
                output_schema={"type": "object", "properties": {**offer.answer, **_PROBLEM}},
                annotations=ToolAnnotations(
                    title=offer.title,
                    read_only_hint=not offer.writes,
                    destructive_hint=False,
                    idempotent_hint=not offer.writes,
                    open_world_hint=False,
                ),
            )
        )


def encodable(value: object) -> object:
    """The same value with what UTF-8 cannot carry written as escapes: a file name may hold bytes
    that are no text.
    """
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
    """What a model has use for; where things are on this machine is nothing for a conversation."""
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
