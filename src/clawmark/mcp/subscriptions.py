"""Word of changes: keeps the index fresh while a server runs, and tells whoever follows a file that
it has changed.

In: what the memory's watcher says. Out: notifications; clients of the newer protocol listen to a
stream of them, those of the older one name the files they follow. Nothing happens while no file
changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary

from mcp.server import ServerRequestContext
from mcp.server.connection import Connection
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourcesListChanged, ResourceUpdated
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from clawmark.aio import AsyncMemory
from clawmark.mcp.resources import uri_of
from clawmark.model.errors import ClawmarkError
from clawmark.model.reports import WatchEvent
from clawmark.model.values import FileState

Files = dict[str, FileState]


class Followers:
    """Who wants to hear about changes; nobody where `may_hear` says that the session may not see
    the files.
    """

    def __init__(self, may_hear: bool) -> None:
        self._may_hear = may_hear
        self.bus = InMemorySubscriptionBus()
        """For streams of the newer protocol."""
        # Weak, because the SDK does not say when a session ends.
        self._followed: WeakKeyDictionary[Connection, set[str]] = WeakKeyDictionary()

    def note_listing(self, context: ServerRequestContext[Any, Any]) -> None:
        """Whoever has seen the list of files hears when it changes; clients of the newer protocol
        say so themselves.
        """
        connection = _connection(context)
        if connection.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._followed.setdefault(connection, set())

    def follow(self, context: ServerRequestContext[Any, Any], uri: str) -> None:
        self._followed.setdefault(_connection(context), set()).add(uri)

    def unfollow(self, context: ServerRequestContext[Any, Any], uri: str) -> None:
        self._followed.get(_connection(context), set()).discard(uri)

    async def tell(self, before: Files, after: Files) -> None:
        """Compare two looks at the files and say what is different."""
        if not self._may_hear:
            return
        changed = [path for path in {**before, **after} if before.get(path) != after.get(path)]
        if before.keys() != after.keys():
            await self.bus.publish(ResourcesListChanged())
            for connection in list(self._followed):
                await connection.send_resource_list_changed()
        for uri in map(uri_of, changed):
            await self.bus.publish(ResourceUpdated(uri=uri))
            for connection, uris in list(self._followed.items()):
                if uri in uris:
                    await connection.send_resource_updated(uri)


@asynccontextmanager
async def kept_fresh(memory: AsyncMemory, followers: Followers) -> AsyncIterator[None]:
    """Keep the index in step with the files from here on, and the followers informed."""
    loop, is_due = asyncio.get_running_loop(), asyncio.Event()

    def heard(event: WatchEvent) -> None:
        if event.kind in ("done", "failed"):
            loop.call_soon_threadsafe(is_due.set)

    async def compare(seen: Files) -> None:
        while await is_due.wait():
            is_due.clear()
            before, seen = seen, await _files(memory, seen)
            await followers.tell(before, seen)

    comparing = asyncio.ensure_future(compare(await _files(memory, {})))
    watching = await memory.watch(heard)
    try:
        yield
    finally:
        comparing.cancel()
        await asyncio.to_thread(watching.close)


async def _files(memory: AsyncMemory, otherwise: Files) -> Files:
    """The files as they are now; what was known before while they cannot be looked at."""
    try:
        _, scan = await memory.plan()
    except ClawmarkError:
        return otherwise
    return {state.path: state for state in scan.files if state.source == "memory"}


def _connection(context: ServerRequestContext[Any, Any]) -> Connection:
    # A handler is given a session per request; only the connection behind it lives as long as the
    # client.
    return context.session._connection
