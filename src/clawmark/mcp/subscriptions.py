"""Keep the index fresh while a server runs, and notify clients about changed files.

Clients of newer protocol versions listen to a stream of changes; clients of older versions
subscribe to single files. Nothing runs while no file changes."""

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


class Subscriptions:
    """The clients to notify; none are notified if the session may not read the memory."""

    def __init__(self, *, may_read: bool) -> None:
        self._may_read = may_read
        self.bus = InMemorySubscriptionBus()
        """For the change streams of newer protocol versions."""
        # Weak, because the SDK does not report when a session ends.
        self._uris: WeakKeyDictionary[Connection, set[str]] = WeakKeyDictionary()

    def subscribe_to_list(self, context: ServerRequestContext[Any, Any]) -> None:
        """Subscribe a client to changes of the file list; newer clients ask for it themselves."""
        connection = _connection(context)
        if connection.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._uris.setdefault(connection, set())

    def subscribe(self, context: ServerRequestContext[Any, Any], uri: str) -> None:
        self._uris.setdefault(_connection(context), set()).add(uri)

    def unsubscribe(self, context: ServerRequestContext[Any, Any], uri: str) -> None:
        self._uris.get(_connection(context), set()).discard(uri)

    async def notify(self, before: Files, after: Files) -> None:
        """Notify the subscribed clients about the difference between two scans."""
        if not self._may_read:
            return
        changed = [path for path in {**before, **after} if before.get(path) != after.get(path)]
        if before.keys() != after.keys():
            await self.bus.publish(ResourcesListChanged())
            for connection in list(self._uris):
                await connection.send_resource_list_changed()
        for uri in map(uri_of, changed):
            await self.bus.publish(ResourceUpdated(uri=uri))
            for connection, uris in list(self._uris.items()):
                if uri in uris:
                    await connection.send_resource_updated(uri)


@asynccontextmanager
async def watch_files(memory: AsyncMemory, subscriptions: Subscriptions) -> AsyncIterator[None]:
    """Keep the index in step with the files and notify clients until the block ends.

    Without an index, nothing is watched."""
    if not memory.settings.plugins.has_memory:
        yield
        return
    loop, is_due = asyncio.get_running_loop(), asyncio.Event()

    def on_event(event: WatchEvent) -> None:
        if event.kind in ("done", "failed"):
            loop.call_soon_threadsafe(is_due.set)

    async def compare(seen: Files) -> None:
        while await is_due.wait():
            is_due.clear()
            before, seen = seen, await _files(memory, seen)
            await subscriptions.notify(before, seen)

    comparing = asyncio.ensure_future(compare(await _files(memory, {})))
    watching = await memory.watch(on_event)
    try:
        yield
    finally:
        comparing.cancel()
        await asyncio.to_thread(watching.close)


async def _files(memory: AsyncMemory, previous: Files) -> Files:
    """Return the files as they are now, or the previous ones if they cannot be scanned."""
    try:
        _, scan = await memory.plan()
    except ClawmarkError:
        return previous
    return {state.path: state for state in scan.files if state.source == "memory"}


def _connection(context: ServerRequestContext[Any, Any]) -> Connection:
    # A handler gets one session per request; only its connection lives as long as the client.
    return context.session._connection
