"""The instructions that a host shows its model about the memory.

The policy in them is that of `clawmark.agent.prompt`. The SDK is not imported, because `initialize`
is answered before it is loaded."""

from __future__ import annotations

from collections.abc import Collection

from clawmark.agent.prompt.context import Context
from clawmark.agent.prompt.sections import Facts, build_prompt
from clawmark.agent.tools.policy import Access, access_of, unavailable
from clawmark.aio import AsyncMemory
from clawmark.memory import Memory

STATUS_TOOL = "memory_status"
"""A tool that only the MCP server offers."""
_ABOUT = (
    "Clawmark is a long-term memory made of plain Markdown notes that outlive every conversation."
)
_STATE = (
    "An answer with `dueFiles` comes from an index that is still catching up; one with `degraded` "
    "says what it lacks, and memory_status says more."
)


def session_access(
    memory: Memory | AsyncMemory, session_key: str | None, chat_type: str = ""
) -> Access:
    """Return what the session may do under the settings of the memory."""
    options = memory.settings.memory
    return access_of(
        session_key,
        chat_type=chat_type,
        citations=options.citations,
        shared=options.shared_sessions,
    )


def session_instructions(
    memory: Memory | AsyncMemory, session_key: str | None, chat_type: str = ""
) -> str:
    """Return the instructions for the session that is served."""
    offered = memory.tools(session_key, append=True, chat_type=chat_type)
    tools = [*(tool.name for tool in offered), STATUS_TOOL]
    return instructions_for(tools, session_access(memory, session_key, chat_type))


def instructions_for(tools: Collection[str], access: Access) -> str:
    """Return the instructions for a session with these tools and rights."""
    if not access.reads:
        return f"{_ABOUT}\n\n{unavailable(access.kind)['error']}"
    context = Context(kind=access.kind, files=(), logs=(), notices=())
    prompt = build_prompt(context, tools=tools, cites=access.cites, facts=Facts())
    return "\n\n".join(
        (_ABOUT, *(section.text for section in prompt.sections if section.stable), _STATE)
    )
