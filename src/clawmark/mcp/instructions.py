"""The server's instructions: what a host shows its model about the memory before anything is asked.

In: the tools a session has and what it may do. Out: text. The policy itself is `runtime.prompt`'s,
so that every host says the same. Needs nothing of the SDK, because `initialize` is answered before
the SDK is loaded."""

from __future__ import annotations

from collections.abc import Collection

from clawmark.agent.prompt.context import Context
from clawmark.agent.prompt.sections import Facts, build_prompt
from clawmark.agent.tools.policy import Access, access_of, unavailable
from clawmark.aio import AsyncMemory
from clawmark.memory import Memory

STATUS_TOOL = "memory_status"
"""The tool that only this server has."""
_ABOUT = (
    "Clawmark is a long-term memory made of plain Markdown notes that outlive every conversation."
)
_STATE = """\
An answer with `dueFiles` comes from an index that is still catching up; one with `degraded` says what it lacks, and \
memory_status says more."""


def session_access(memory: Memory | AsyncMemory, session_key: str | None) -> Access:
    """What the session may do, by the settings of the memory."""
    options = memory.settings.memory
    return access_of(session_key, citations=options.citations, shared=options.shared_sessions)


def session_instructions(memory: Memory | AsyncMemory, session_key: str | None) -> str:
    """The instructions for the session that is served."""
    tools = [*(tool.name for tool in memory.tools(session_key, append=True)), STATUS_TOOL]
    return instructions_for(tools, session_access(memory, session_key))


def instructions_for(tools: Collection[str], access: Access) -> str:
    """What a session of this kind needs to know, and nothing about tools it may not use."""
    if not access.reads:
        return f"{_ABOUT}\n\n{unavailable(access.kind)['error']}"
    context = Context(kind=access.kind, files=(), logs=(), notices=())
    prompt = build_prompt(context, tools=tools, cites=access.cites, facts=Facts())
    return "\n\n".join(
        (_ABOUT, *(section.text for section in prompt.sections if section.stable), _STATE)
    )
