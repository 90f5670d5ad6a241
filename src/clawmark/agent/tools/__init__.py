"""The tools of an agent: `memory_search`, `memory_get` and, optionally, `memory_append` and
`memory_forget`."""

from __future__ import annotations

from collections.abc import Collection

from clawmark.agent.prompt.trust_gate import LABELS_ONLY, TrustGate
from clawmark.agent.tools.base import Payload, Tool, as_anthropic, as_openai, render
from clawmark.agent.tools.memory_append import Notebook, append_tool
from clawmark.agent.tools.memory_forget import Forgetter, forget_tool
from clawmark.agent.tools.memory_get import Read, ReadAsOf, get_tool
from clawmark.agent.tools.memory_search import Search, search_tool
from clawmark.agent.tools.outside_seen import OutsideSeen
from clawmark.agent.tools.policy import Access, access_of

__all__ = [
    "Notebook",
    "Payload",
    "Read",
    "ReadAsOf",
    "Search",
    "Tool",
    "as_anthropic",
    "as_openai",
    "make_tools",
    "render",
    "tools_for",
]


def make_tools(
    search: Search,
    read: Read,
    *,
    citations: str,
    session_key: str | None,
    max_results: int,
    min_score: float,
    chat_type: str = "",
    shared: Collection[str] = (),
    notebook: Notebook | None = None,
    sources: Collection[str] = ("memory",),
    read_as_of: ReadAsOf | None = None,
) -> list[Tool]:
    """Return the tools for one session; the settings are defaults for missing arguments.

    With a `notebook`, private sessions also get `memory_append`. The other two tools are always
    returned; for a session without access they answer that memory is unavailable."""
    access = access_of(session_key, chat_type=chat_type, citations=citations, shared=shared)
    return tools_for(
        access,
        search=search,
        read=read,
        citations=citations,
        session_key=session_key,
        max_results=max_results,
        min_score=min_score,
        notebook=notebook,
        sources=sources,
        read_as_of=read_as_of,
    )


def tools_for(
    access: Access,
    *,
    search: Search,
    read: Read,
    citations: str,
    session_key: str | None,
    max_results: int,
    min_score: float,
    notebook: Notebook | None = None,
    sources: Collection[str] = ("memory",),
    read_as_of: ReadAsOf | None = None,
    forgetter: Forgetter | None = None,
    gate: TrustGate = LABELS_ONLY,
    seen: OutsideSeen | None = None,
) -> list[Tool]:
    """Return the tools for sessions with this access; the arguments are those of `make_tools`.

    With a `forgetter`, private sessions also get `memory_forget`. The `gate` decides which results
    are marked as text from outside; they are added to what the session has `seen`."""
    seen = OutsideSeen() if seen is None else seen
    tools = [
        search_tool(
            search,
            access,
            citations=citations,
            max_results=max_results,
            min_score=min_score,
            sources=sources,
            gate=gate,
            seen=seen,
        ),
        get_tool(read, access, gate, read_as_of=read_as_of, seen=seen),
    ]
    if notebook is not None and access.writes:
        tools.append(append_tool(notebook, session_key or "", access, seen))
    if forgetter is not None and access.writes:
        tools.append(forget_tool(forgetter))
    return tools
