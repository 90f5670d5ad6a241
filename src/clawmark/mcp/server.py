"""Tools, resources and the prompt put together as one MCP server, whatever carries it.

In: an open memory and the key of the session it is offered to. Out: the SDK's server, which keeps
the index fresh while it runs and answers meanwhile from what is there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from mcp.server import InitializationOptions, NotificationOptions, Server, ServerRequestContext
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    SubscribeRequestParams,
    UnsubscribeRequestParams,
)

from clawmark.aio import AsyncMemory
from clawmark.mcp.instructions import session_access, session_instructions
from clawmark.mcp.prompts import RECALL, recall_prompt
from clawmark.mcp.resources import TEMPLATE, Shelf
from clawmark.mcp.stdio.handshake import SERVER_INFO
from clawmark.mcp.subscriptions import Followers, kept_fresh
from clawmark.mcp.tools import Toolbox

Context: TypeAlias = ServerRequestContext[Any, Any]
Page: TypeAlias = PaginatedRequestParams | None

MOST_STREAMS = 32
"""Streams of changes open at once."""


def build_server(memory: AsyncMemory, session_key: str | None) -> Server[None]:
    """The server over one memory."""
    access = session_access(memory, session_key)
    toolbox, shelf, followers = (
        Toolbox(memory, session_key),
        Shelf(memory, access),
        Followers(access.reads),
    )
    instructions = session_instructions(memory, session_key)

    async def list_tools(_: Context, page: Page) -> ListToolsResult:
        _only_page(page)
        return ListToolsResult(tools=toolbox.tools)

    async def call_tool(_: Context, asked: CallToolRequestParams) -> CallToolResult:
        return await toolbox.call(asked.name, asked.arguments)

    async def list_resources(context: Context, page: Page) -> ListResourcesResult:
        followers.note_listing(context)
        return await shelf.list(page.cursor if page is not None else None)

    async def list_templates(_: Context, page: Page) -> ListResourceTemplatesResult:
        _only_page(page)
        return ListResourceTemplatesResult(resource_templates=[TEMPLATE])

    async def read_resource(_: Context, asked: ReadResourceRequestParams) -> ReadResourceResult:
        return await shelf.read(asked.uri)

    async def subscribe(context: Context, asked: SubscribeRequestParams) -> EmptyResult:
        await shelf.read(asked.uri)
        followers.follow(context, asked.uri)
        return EmptyResult()

    async def unsubscribe(context: Context, asked: UnsubscribeRequestParams) -> EmptyResult:
        followers.unfollow(context, asked.uri)
        return EmptyResult()

    async def list_prompts(_: Context, page: Page) -> ListPromptsResult:
        _only_page(page)
        return ListPromptsResult(prompts=[RECALL])

    async def get_prompt(_: Context, asked: GetPromptRequestParams) -> GetPromptResult:
        return recall_prompt(instructions, asked.name, asked.arguments)

    @asynccontextmanager
    async def lifespan(_: Server[None]) -> AsyncIterator[None]:
        async with kept_fresh(memory, followers):
            yield None

    return _TellingServer(
        SERVER_INFO["name"],
        version=SERVER_INFO["version"],
        title=SERVER_INFO["title"],
        description=SERVER_INFO["description"],
        instructions=instructions,
        lifespan=lifespan,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
        on_subscriptions_listen=ListenHandler(followers.bus, max_subscriptions=MOST_STREAMS),
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


class _TellingServer(Server[None]):
    """The SDK's server, which says on every transport that it tells of changes in the list of
    files.
    """

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *more: Any, **named: Any
    ) -> InitializationOptions:
        told = notification_options or NotificationOptions(resources_changed=True)
        return super().create_initialization_options(told, *more, **named)


def _only_page(page: Page) -> None:
    if page is not None and page.cursor is not None:
        raise MCPError(INVALID_PARAMS, "The cursor is not one of ours.")
