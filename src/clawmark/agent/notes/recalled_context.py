"""Find what the memory contributed to a conversation, and whether other tools were used.

A session note must not repeat what came from the memory: the results of `memory_search` and
`memory_get`, and blocks of recalled memory. OpenClaw, Claude Code and Codex write calls and results
in different formats, but all of them name the tool in the call and give call and result the same
id."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from clawmark.agent.session.transcript_reader import lines_backwards
from clawmark.model.errors import WorkspaceError
from clawmark.text.transcripts.records import parse_line
from clawmark.text.untrusted.recalled_blocks import recalled_blocks
from clawmark.workspace import Workspace
from clawmark.workspace.daily import daily_path

READING = ("memory_search", "memory_get")
"""Tools whose results are memory; hosts prefix the names (`mcp__clawmark__memory_search`)."""
_MEMORY = (*READING, "memory_append", "memory_forget", "memory_status")
CALLS = (
    "toolCall",
    "tool_use",
    "server_tool_use",
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "web_search_call",
    "file_search_call",
)
_IDS = ("id", "call_id", "toolCallId", "tool_use_id", "tool_call_id")
_WHOLE = 1 << 40


class RecalledContext(NamedTuple):
    """What a conversation took from the memory and from tools."""

    recalled: str
    """Everything that came from the memory, as one text."""
    used_tools: bool
    """Whether the agent used a tool other than those of the memory."""


class ToolUse(NamedTuple):
    """What the tools of a conversation contributed to it."""

    recalled: list[str]
    """The texts that came from the memory."""
    used_tools: bool
    """Whether the agent used a tool other than those of the memory."""


def read_recalled_context(
    transcript: str, since: int, workspace: Workspace, days: tuple[str, ...]
) -> RecalledContext:
    """Read a transcript from byte `since` on.

    MEMORY.md and the logs of `days` count as recalled: a session is shown them at its start.
    """
    shown = [_read(workspace, path) for path in ("MEMORY.md", *map(daily_path, days))]
    use = read_tool_use(transcript, since)
    return RecalledContext("\n".join([*shown, *use.recalled]), use.used_tools)


def read_tool_use(transcript: str, since: int) -> ToolUse:
    """Read the tool calls of a transcript from byte `since` on, and what came from the memory."""
    recalled, called, used_tools = list[str](), set[str](), False
    for call in _calls(transcript, since):
        name = str(call.get("name") or "")
        if name.endswith(READING):
            called.update(ids_of(call))
        used_tools |= not name.endswith(_MEMORY)
    for line in lines_backwards(transcript, since):
        if "recalled memory" in line or "toolName" in line or any(one in line for one in called):
            recalled += _recalled_on(parse_line(line), called)
    return ToolUse(recalled, used_tools)


def uses_other_tools(transcript: str) -> bool:
    """Whether the agent used a tool other than those of the memory."""
    return any(not str(call.get("name") or "").endswith(_MEMORY) for call in _calls(transcript, 0))


def _calls(transcript: str, since: int) -> Iterator[dict[str, object]]:
    """Yield the tool calls of a transcript."""
    for line in lines_backwards(transcript, since):
        if any(word in line for word in CALLS):
            yield from (one for one in objects_in(parse_line(line)) if one.get("type") in CALLS)


def _recalled_on(record: dict[str, object], called: set[str]) -> Iterator[str]:
    """Yield the texts of a record that came from the memory: results of its tools, and blocks."""
    for one in objects_in(record):
        is_result = one.get("type") not in CALLS and bool(called.intersection(ids_of(one)))
        if is_result or str(one.get("toolName") or "").endswith(READING):
            yield from strings_in(one)
    for text in strings_in(record):
        yield from recalled_blocks(text)


def ids_of(record: dict[str, object]) -> list[str]:
    """Return the ids by which a call and its result belong together."""
    return [value for name in _IDS if isinstance(value := record.get(name), str) and value]


def objects_in(value: object) -> Iterator[dict[str, object]]:
    """Yield an object and every object inside it."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from objects_in(one)


def strings_in(value: object) -> Iterator[str]:
    """Yield every text inside a value, also inside a text that is JSON."""
    if isinstance(value, str):
        inner = parsed_json(value)
        if inner is None:
            yield value
        else:
            yield from strings_in(inner)
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from strings_in(one)


def parsed_json(text: str) -> object:
    """Return the object or list that a text is as JSON; None if it is other text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _read(workspace: Workspace, path: str) -> str:
    """Return a memory file; empty if it cannot be read."""
    try:
        return workspace.read_lines(path, 1, None, max_lines=_WHOLE, max_chars=_WHOLE).text
    except WorkspaceError:
        return ""
