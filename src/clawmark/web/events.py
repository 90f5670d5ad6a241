"""Server-sent events: what has changed in the memory since a page was loaded.

The memory watches its files in a thread of its own; pages listen to it through the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

from clawmark.model.reports import WatchEvent
from clawmark.web.render import to_json

PING_SECONDS = 20.0
"""A comment is sent this often, so that a browser that is gone is noticed."""
MAX_WAITING = 100
"""Events kept for a page that does not read them; later ones are left out."""


class Change(NamedTuple):
    """One event, as a page gets it."""

    kind: str
    """`changed`, `indexing`, `indexed` or `failed`."""
    message: str = ""
    files: int = 0
    done: int = 0
    total: int = 0


class Events:
    """Passes the events of a memory on to the pages that are open."""

    def __init__(self) -> None:
        self._listeners = dict[asyncio.Queue[Change], asyncio.AbstractEventLoop]()

    def publish(self, event: WatchEvent) -> None:
        """Pass an event on; called in any thread."""
        change = describe(event)
        if change is None:
            return
        for queue, loop in tuple(self._listeners.items()):
            if not loop.is_closed():
                loop.call_soon_threadsafe(_put, queue, change)

    async def stream(self, ping: float = PING_SECONDS) -> AsyncIterator[bytes]:
        """Yield the events for one page, in the format of `text/event-stream`."""
        queue = asyncio.Queue[Change](MAX_WAITING)
        self._listeners[queue] = asyncio.get_running_loop()
        try:
            yield b": open\n\n"
            while True:
                try:
                    change = await asyncio.wait_for(queue.get(), ping)
                except TimeoutError:
                    yield b": ping\n\n"
                    continue
                yield b"event: " + change.kind.encode() + b"\ndata: " + to_json(change) + b"\n\n"
        finally:
            del self._listeners[queue]


def describe(event: WatchEvent) -> Change | None:
    """Return what is sent to the page for an event; None if nothing is."""
    if event.kind == "progress" and event.progress is not None:
        done, total = event.progress.done, event.progress.total
        what = "files" if event.progress.stage == "text" else "passages"
        return Change(
            "indexing", message=f"Indexing: {done:,} of {total:,} {what}", done=done, total=total
        )
    if event.kind == "done" and event.report is not None:
        report = event.report
        files = report.added + report.updated + report.deleted
        return Change("indexed", message=f"{files:,} changed", files=files)
    if event.kind == "failed":
        return Change("failed", message="The last sync failed; Health says why.")
    return None


def _put(queue: asyncio.Queue[Change], change: Change) -> None:
    if not queue.full():
        queue.put_nowait(change)
