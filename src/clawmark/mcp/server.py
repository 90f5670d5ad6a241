"""Build the MCP server from the tools, the resources and the recall prompt of a session.

It serves one session, or the session that the host names in each request. While it runs, the index
is kept fresh in the background."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

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
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    RequestParams,
    SubscribeRequestParams,
    TextContent,
    UnsubscribeRequestParams,
)

from clawmark.agent.prompt.sections import day_of_prompt
from clawmark.aio import AsyncMemory
from clawmark.mcp.host_session import session_in
from clawmark.mcp.instructions import session_access, session_instructions
from clawmark.mcp.resources import PROPOSAL_TEMPLATE, TEMPLATE, Resources
from clawmark.mcp.stdio.handshake import SERVER_INFO
from clawmark.mcp.subscriptions import Subscriptions, watch_files
from clawmark.mcp.tools import SessionTools

Context: TypeAlias = ServerRequestContext[Any, Any]
Page: TypeAlias = PaginatedRequestParams | None

MAX_CHANGE_STREAMS = 32
RECALL = Prompt(
    name="recall",
    title="Recall before you answer",
    description="The recall policy: search the memory first, read what is needed, "
    "say when nothing was found.",
    arguments=[
        PromptArgument(
            name="question", description="What you want to know from memory.", required=False
        ),
        PromptArgument(
            name="time", description="`true` to add the current date and time.", required=False
        ),
    ],
)


class Session(NamedTuple):
    """What the server offers to one session."""

    may_read: bool
    tools: SessionTools
    resources: Resources
    instructions: str


SessionOf: TypeAlias = Callable[[RequestParams | None], Session]
"""Returns the session that a request belongs to."""


def make_session(memory: AsyncMemory, session_key: str | None, chat_type: str = "") -> Session:
    access = session_access(memory, session_key, chat_type)
    return Session(
        may_read=access.reads,
        tools=SessionTools(memory, session_key, chat_type),
        resources=Resources(memory, access),
        instructions=session_instructions(memory, session_key, chat_type),
    )


def build_server(memory: AsyncMemory, session_key: str | None) -> Server[None]:
    """Return the server that offers one memory to one session."""
    session = make_session(memory, session_key)
    return _build(
        memory,
        lambda _: session,
        Subscriptions(may_read=session.may_read),
        session.instructions,
    )


def build_host_server(memory: AsyncMemory) -> Server[None]:
    """Return the server for a host that names the session of each request in its `_meta`.

    Changed files are not announced, because a notification does not belong to a session."""

    def session_of(params: RequestParams | None) -> Session:
        named = session_in(params.meta if params is not None else None)
        return make_session(memory, named.key, named.chat_type)

    return _build(
        memory, session_of, Subscriptions(may_read=False), session_instructions(memory, None)
    )


def _build(
    memory: AsyncMemory, session_of: SessionOf, subscriptions: Subscriptions, instructions: str
) -> Server[None]:
    has_memory = memory.settings.plugins.has_memory

    async def list_tools(_: Context, page: Page) -> ListToolsResult:
        _check_no_cursor(page)
        return ListToolsResult(tools=session_of(page).tools.tools)

    async def call_tool(_: Context, params: CallToolRequestParams) -> CallToolResult:
        return await session_of(params).tools.call(params.name, params.arguments)

    async def list_resources(context: Context, page: Page) -> ListResourcesResult:
        subscriptions.subscribe_to_list(context)
        cursor = page.cursor if page is not None else None
        return await session_of(page).resources.list(cursor)

    async def list_templates(_: Context, page: Page) -> ListResourceTemplatesResult:
        _check_no_cursor(page)
        return ListResourceTemplatesResult(resource_templates=[TEMPLATE, PROPOSAL_TEMPLATE])

    async def read_resource(_: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        return await session_of(params).resources.read(params.uri)

    async def subscribe(context: Context, params: SubscribeRequestParams) -> EmptyResult:
        await session_of(params).resources.read(params.uri)
        subscriptions.subscribe(context, params.uri)
        return EmptyResult()

    async def unsubscribe(context: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        subscriptions.unsubscribe(context, params.uri)
        return EmptyResult()

    async def list_prompts(_: Context, page: Page) -> ListPromptsResult:
        _check_no_cursor(page)
        return ListPromptsResult(prompts=[RECALL] if has_memory else [])

    async def get_prompt(_: Context, params: GetPromptRequestParams) -> GetPromptResult:
        if not has_memory:
            raise MCPError(INVALID_PARAMS, "There are no prompts: the memory slot is empty.")
        zone, now = memory.settings.user_timezone, await memory.now()
        return _recall_prompt(session_of(params).instructions, params, now, zone)

    @asynccontextmanager
    async def lifespan(_: Server[None]) -> AsyncIterator[None]:
        async with watch_files(memory, subscriptions):
            yield None

    return _NotifyingServer(
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
        on_subscriptions_listen=ListenHandler(
            subscriptions.bus, max_subscriptions=MAX_CHANGE_STREAMS
        ),
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


class _NotifyingServer(Server[None]):
    """The SDK's server, announcing list change notifications on every transport."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *more: Any, **named: Any
    ) -> InitializationOptions:
        announced = notification_options or NotificationOptions(resources_changed=True)
        return super().create_initialization_options(announced, *more, **named)


def _recall_prompt(
    policy: str, params: GetPromptRequestParams, now: datetime, zone: str
) -> GetPromptResult:
    """Return the policy as a user message, then the time if asked for, and the question."""
    if params.name != RECALL.name:
        raise MCPError(INVALID_PARAMS, f"There is no such prompt; the only one is `{RECALL.name}`.")
    given = params.arguments or {}
    question = given.get("question", "").strip()
    day = day_of_prompt(now.date().isoformat(), zone or now.tzname() or "")
    has_time = given.get("time", "").strip().lower() == "true"
    parts = [
        policy,
        f"Today is {day}. The time is {now:%H:%M}." if has_time else "",
        f"Answer from memory: {question}" if question else "",
    ]
    text = "\n\n".join(filter(None, parts))
    message = PromptMessage(role="user", content=TextContent(type="text", text=text))
    return GetPromptResult(description=RECALL.description, messages=[message])


def _check_no_cursor(page: Page) -> None:
    if page is not None and page.cursor is not None:
        raise MCPError(INVALID_PARAMS, "The cursor is not valid.")
