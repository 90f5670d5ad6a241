"""The instructions that a host shows its model about the memory.

The policy in them is that of `clawmark.agent.prompt`. The SDK is not imported, because `initialize`
is answered before it is loaded."""

from __future__ import annotations

from collections.abc import Collection

from clawmark.agent.prompt.context import Context
from clawmark.agent.prompt.sections import Facts, build_prompt
from clawmark.agent.tools.policy import Access, unavailable
from clawmark.aio import AsyncMemory
from clawmark.composition import agent as agent_parts
from clawmark.config.schema.plugins import MEMORY_CORE
from clawmark.memory import Memory

STATUS_TOOL = "memory_status"
"""A tool that only the MCP server offers."""
_ABOUT = (
    "Clawmark is a long-term memory made of plain Markdown notes that outlive every conversation."
)
_EMPTY = (
    "Clawmark serves the Markdown files of a workspace. There is no memory to search: its memory "
    "slot is empty."
)
_STATE = (
    "An answer with `dueFiles` comes from an index that is still catching up; one with `degraded` "
    "says what it lacks"
)


def session_access(
    memory: Memory | AsyncMemory, session_key: str | None, chat_type: str = ""
) -> Access:
    """Return what the session may do under the settings of the memory."""
    return agent_parts.session_access(memory.settings, session_key, chat_type=chat_type)


def offers_status(memory: Memory | AsyncMemory, access: Access) -> bool:
    """Check whether the session has the tool `memory_status`."""
    return bool(access.permitted((STATUS_TOOL,), memory.settings.tools))


def session_instructions(
    memory: Memory | AsyncMemory, session_key: str | None, chat_type: str = ""
) -> str:
    """Return the instructions for the session that is served."""
    if not memory.settings.plugins.has_memory:
        return _EMPTY
    offered = memory.tools(session_key, append=True, chat_type=chat_type)
    access = session_access(memory, session_key, chat_type)
    tools = [tool.name for tool in offered]
    tools += [STATUS_TOOL] if offers_status(memory, access) else []
    is_core = memory.slot.slot.name == MEMORY_CORE
    section = None if is_core else memory.slot.section(session_key, tools, chat_type)
    return instructions_for(tools, access, section)


def instructions_for(tools: Collection[str], access: Access, section: str | None = None) -> str:
    """Return the instructions for a session with these tools and rights.

    `section` is what the memory plugin says about its tools; None for the text of memory-core."""
    if not access.reads:
        return f"{_ABOUT}\n\n{unavailable(access.kind, access.sandbox)['error']}"
    context = Context(kind=access.kind, files=(), logs=(), notices=())
    prompt = build_prompt(context, tools=tools, cites=access.cites, facts=Facts(), memory=section)
    stable = [part.text for part in prompt.sections if part.stable]
    state = _STATE + (", and memory_status says more." if STATUS_TOOL in tools else ".")
    return "\n\n".join([_ABOUT, *stable, *([state] if section is None else [])])
