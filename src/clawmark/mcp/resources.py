"""Memory files as MCP resources, such as `memory://memory/2026-11-15.md`.

`Memory.read` decides which paths are memory, as it does for `memory_get`. The proposals that wait
for the user are resources too, such as `clawmark://proposals/p3`; they can only be read."""

from __future__ import annotations

import json
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

from clawmark.agent.review.proposals import Proposal, as_json
from clawmark.agent.tools.base import one_line
from clawmark.agent.tools.policy import Access, unavailable
from clawmark.aio import AsyncMemory
from clawmark.model.errors import ClawmarkError
from clawmark.model.values import is_media
from clawmark.workspace.places import not_memory

SCHEME = "memory://"
MARKDOWN = "text/markdown"
PAGE = 500
"""Resources per page of the list."""
MAX_CHARS = 1_000_000
"""Of one file; longer files are read in parts with memory_get."""
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

PROPOSALS = "clawmark://proposals"
JSON = "application/json"
PROPOSAL_TEMPLATE = ResourceTemplate(
    name="proposal",
    title="Proposal",
    uri_template=PROPOSALS + "/{id}",
    description="A change that an agent wants to make to the memory, with its reason and "
    f"citations. {PROPOSALS} lists those that wait for the user, who decides with "
    "`clawmark review`. The text in it is not memory yet.",
    mime_type=JSON,
)


def uri_of(path: str) -> str:
    """Return the URI of a file; undecodable bytes of its name are preserved."""
    return SCHEME + quote_from_bytes(os.fsencode(path), safe="/")


def path_of(uri: str) -> str:
    """Return the path or citation of a URI; `Memory.read` checks it afterwards."""
    if not uri.startswith(SCHEME):
        raise _error(f"Only URIs that begin with {SCHEME} can be read.")
    return os.fsdecode(unquote_to_bytes(uri[len(SCHEME) :].removeprefix("/")))


class Resources:
    """The memory files that one session may read."""

    def __init__(self, memory: AsyncMemory, access: Access) -> None:
        self._memory = memory
        self._access = access

    async def list(self, cursor: str | None) -> ListResourcesResult:
        """Return one page of the files."""
        if cursor is not None and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
            raise _error("The cursor is not valid.")
        if not self._access.reads:
            return ListResourcesResult(resources=[])
        try:
            _, scan = await self._memory.plan()
        except ClawmarkError as error:
            raise _error(f"{one_line(error.message)} {one_line(error.hint)}".strip()) from error
        files = sorted(
            (state for state in scan.files if state.source == "memory"),
            key=lambda state: state.path,
        )
        start = int(cursor or 0)
        shown = [
            Resource(
                name=one_line(state.path),
                uri=uri_of(state.path),
                mime_type=None if is_media(state.path) else MARKDOWN,
                size=state.size,
            )
            for state in files[start : start + PAGE]
        ]
        if not start and self._access.is_private and await self._memory.review.list():
            name = "proposals that wait for review"
            shown.append(Resource(name=name, uri=PROPOSALS, mime_type=JSON))
        following = str(start + PAGE) if start + PAGE < len(files) else None
        return ListResourcesResult(resources=shown, next_cursor=following)

    async def read(self, uri: str) -> ReadResourceResult:
        """Return the text of a file or of cited lines."""
        if not self._access.reads:
            raise _error(str(unavailable(self._access.kind, self._access.sandbox)["error"]))
        is_proposal = uri == PROPOSALS or uri.startswith(f"{PROPOSALS}/")
        try:
            text = await (self._proposals(uri) if is_proposal else self._text(path_of(uri)))
        except ClawmarkError as error:
            raise _error(f"{one_line(error.message)} {one_line(error.hint)}".strip()) from error
        mime_type = JSON if is_proposal else MARKDOWN
        return ReadResourceResult(
            contents=[TextResourceContents(uri=uri, mime_type=mime_type, text=text)]
        )

    async def _proposals(self, uri: str) -> str:
        """Return one proposal, or the list of those that wait, without their text."""
        if not self._access.is_private:
            raise _error("Proposals can only be read in a private session.")
        if uri != PROPOSALS:
            proposal = await self._memory.review.get(uri.removeprefix(f"{PROPOSALS}/"))
            return json.dumps(as_json(proposal), ensure_ascii=False)
        waiting = [_summary(one) for one in await self._memory.review.list()]
        return json.dumps({"proposals": waiting}, ensure_ascii=False)

    async def _text(self, path: str) -> str:
        is_cited = "#L" in path
        excerpt = await self._memory.read(
            path, lines=None if is_cited else ALL_LINES, max_chars=MAX_CHARS
        )
        if not self._access.may_read(excerpt.path):
            raise not_memory(excerpt.path)
        if not excerpt.total_lines and not await self._exists(excerpt.path):
            raise _error("There is no such file.")
        if not excerpt.truncated or is_cited:
            return excerpt.text
        following = excerpt.next_start or excerpt.start + excerpt.lines
        return (
            f"{excerpt.text}\n\n[The file continues at line {following}; read on with memory_get.]"
        )

    async def _exists(self, path: str) -> bool:
        """Whether an empty file exists; a missing one reads the same."""
        _, scan = await self._memory.plan()
        return any(state.path == path for state in scan.files)


def _summary(proposal: Proposal) -> dict[str, object]:
    return {
        "id": proposal.id,
        "uri": f"{PROPOSALS}/{proposal.id}",
        "created": proposal.created,
        "title": proposal.title,
        "changes": len(proposal.pending),
    }


def _error(reason: str) -> MCPError:
    return MCPError(INVALID_PARAMS, reason)
