"""The two tools an agent gets: `memory_search` finds, `memory_get` reads.

In: a search function, a read function and the settings they are offered under. Out: tools for any agent SDK. Nothing
here opens a file or a database.
"""

from __future__ import annotations

from clawmark.tools.base import Payload, Tool, as_anthropic, as_openai, render
from clawmark.tools.memory_get import Read, get_tool
from clawmark.tools.memory_search import Search, search_tool

__all__ = ["Payload", "Read", "Search", "Tool", "as_anthropic", "as_openai", "make_tools", "render"]


def make_tools(
    search: Search, read: Read, *, citations: str, session_key: str, max_results: int, min_score: float
) -> list[Tool]:
    """Both tools for one session, with the configured defaults for what a model leaves out."""
    offered = search_tool(search, citations=citations, session_key=session_key, max_results=max_results, min_score=min_score)
    return [offered, get_tool(read)]
