"""Memory files as MCP resources: `memory://memory/2026-11-15.md` names a file as citations do.

In: an open memory, and whether its session may see it. Out: the list of files, and the text of one.
Which paths are memory is decided by the guard behind `Memory.read`, as for `memory_get`; word of
changes is left to `changes`."""

from __future__ import annotations

import os
from urllib.parse import quote_from_bytes, unquote_to_bytes

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    ListResourcesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from clawmark.agent.tools.base import one_line
from clawmark.agent.tools.policy import Access, unavailable
from clawmark.aio import AsyncMemory
from clawmark.model.errors import ClawmarkError
from clawmark.workspace.places import not_memory

SCHEME = "memory://"
MARKDOWN = "text/markdown"
PAGE = 500
"""Resources in one answer to a list."""
MOST_CHARS = 1_000_000
"""Of one file; what is longer is read in parts with memory_get."""
ALL_LINES = 10**9

TEMPLATE = ResourceTemplate(
    name="memory file",
    title="Memory file",
    uri_template=SCHEME + "{+path}",
    description="A memory file by its path, such as "
    "memory://MEMORY.md or memory://memory/2026-11-15.md; "
    "a citation (memory://memory/2026-11-15.md#L3-L8) gives those lines.",
    mime_type=MARKDOWN,
)


def uri_of(path: str) -> str:
    """The address of a file; bytes that are no text stay what they are."""
    return SCHEME + quote_from_bytes(os.fsencode(path), safe="/")


def path_of(uri: str) -> str:
    """The path or citation an address stands for; the guard judges it afterwards."""
    if not uri.startswith(SCHEME):
        raise _refused(f"Only addresses that begin with {SCHEME} are read here.")
    return os.fsdecode(unquote_to_bytes(uri[len(SCHEME) :].removeprefix("/")))


class Shelf:
    """The files of one memory, as one session may see them."""

    def __init__(self, memory: AsyncMemory, access: Access) -> None:
        self._memory = memory
        self._access = access

    async def list(self, cursor: str | None) -> ListResourcesResult:
        """One page of the files that are there now."""
        if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
            raise _refused("The cursor is not one of ours.")
        if not self._access.reads:
            return ListResourcesResult(resources=[])
        try:
            _, scan = await self._memory.plan()
        except ClawmarkError as error:
            raise _told(error) from error
        files = sorted(
            (state for state in scan.files if state.source == "memory"),
            key=lambda state: state.path,
        )
        start = int(cursor or 0)
        shown = [
            Resource(
                name=one_line(state.path),
                uri=uri_of(state.path),
                mime_type=MARKDOWN,
                size=state.size,
            )
            for state in files[start : start + PAGE]
        ]
        following = str(start + PAGE) if start + PAGE < len(files) else None
        return ListResourcesResult(resources=shown, next_cursor=following)

    async def read(self, uri: str) -> ReadResourceResult:
        """The text of a file, through the same guard as `memory_get`."""
        if not self._access.reads:
            raise _refused(str(unavailable(self._access.kind)["error"]))
        try:
            text = await self._text(path_of(uri))
        except ClawmarkError as error:
            raise _told(error) from error
        return ReadResourceResult(
            contents=[TextResourceContents(uri=uri, mime_type=MARKDOWN, text=text)]
        )

    async def _text(self, path: str) -> str:
        is_cited = "#L" in path
        excerpt = await self._memory.read(
            path, lines=None if is_cited else ALL_LINES, max_chars=MOST_CHARS
        )
        if not self._access.may_read(excerpt.path):
            raise not_memory(excerpt.path)
        if not excerpt.total_lines and not await self._is_there(excerpt.path):
            raise _refused("There is no such file.")
        if not excerpt.truncated or is_cited:
            return excerpt.text
        following = excerpt.next_start or excerpt.start + excerpt.lines
        return (
            f"{excerpt.text}\n\n[The file goes on at line "
            f"{following}; read it there with memory_get.]"
        )

    async def _is_there(self, path: str) -> bool:
        """Whether a file without a line is there at all; an absent one reads the same."""
        _, scan = await self._memory.plan()
        return any(state.path == path for state in scan.files)


def _told(error: ClawmarkError) -> MCPError:
    return _refused(f"{one_line(error.message)} {one_line(error.hint)}".strip())


def _refused(reason: str) -> MCPError:
    return MCPError(INVALID_PARAMS, reason)
