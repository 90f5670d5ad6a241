"""The tools an agent gets: `memory_search` finds, `memory_get` reads, and `memory_append`, where it
is wanted, writes.

In: functions that search, read and write, and the settings they are offered under. Out: tools for
any agent SDK. Nothing here opens a file or a database."""

from __future__ import annotations

from collections.abc import Collection

from clawmark.agent.tools.base import Payload, Tool, as_anthropic, as_openai, render
from clawmark.agent.tools.memory_append import Notebook, append_tool
from clawmark.agent.tools.memory_get import Read, get_tool
from clawmark.agent.tools.memory_search import Search, search_tool
from clawmark.agent.tools.policy import access_of

__all__ = [
    "Notebook",
    "Payload",
    "Read",
    "Search",
    "Tool",
    "as_anthropic",
    "as_openai",
    "make_tools",
    "render",
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
) -> list[Tool]:
    """The tools for one session, with the configured defaults for what a model leaves out.

    With a `notebook` there is `memory_append`, for private sessions only. The other two are always
    there: a session that may not use them is told so when it asks."""
    access = access_of(session_key, chat_type=chat_type, citations=citations, shared=shared)
    tools = [
        search_tool(
            search,
            access,
            citations=citations,
            max_results=max_results,
            min_score=min_score,
            sources=sources,
        ),
        get_tool(read, access),
    ]
    if notebook is not None and access.writes:
        tools.append(append_tool(notebook, session_key or ""))
    return tools
