"""Limit the number of connections and how long each may stay silent.

uvicorn has no limit for a client that sends nothing, so this protocol sits in front of uvicorn's.
A client has `Limits.seconds` to begin a request, to finish it, and to read the answer. When all
places are taken, a new connection replaces the oldest one that is not being answered, preferring
one that has never made a request: idle or slow clients cannot keep others out."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

BUSY = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
BUSY_SECONDS = 1.0
HEAD_END = b"\r\n\r\n"
MAX_EARLY = 128 << 10
"""Bytes that a client may send while its previous request is being answered."""
_RESET = struct.pack("ii", 1, 0) if os.name == "posix" else struct.pack("hh", 1, 0)


class Limits(NamedTuple):
    connections: int = 64
    sessions: int = 256
    seconds: float = 30.0
    """For a request to begin, for it to arrive completely, and for its answer to be read."""


class Connections:
    """All connections of one server."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.waiting: dict[LimitedConnection, None] = {}
        """Connections without a complete request, oldest first."""
        self.served: set[LimitedConnection] = set()
        self.refused: set[LimitedConnection] = set()
        """Connections that are being sent a 503."""
        self.is_closed = False

    def admit(self) -> bool:
        """Make room for one more; False if every connection is being answered."""
        if len(self.waiting) + len(self.served) < self.limits.connections:
            return True
        # A client that has made a request before is probably only idle.
        victim = next((one for one in self.waiting if not one.has_asked), None) or next(
            iter(self.waiting), None
        )
        if victim is None:
            return False
        victim.drop()
        return True

    async def finish(self, seconds: float) -> None:
        """Close all connections after the answers that are on their way have been sent."""
        self.is_closed = True
        for connection in [*self.waiting, *self.served]:
            connection.finish()
        ends = asyncio.get_running_loop().time() + seconds
        while self.waiting or self.served:
            if asyncio.get_running_loop().time() > ends:
                return
            await asyncio.sleep(0.01)

    def close(self) -> None:
        """Drop all connections, and those that are still to come."""
        self.is_closed = True
        for connection in [*self.waiting, *self.served, *self.refused]:
            connection.drop()


class LimitedConnection(asyncio.Protocol):
    """One connection.

    `AccessControl` calls `serve` when a complete request has arrived and `wait` when it has been
    answered.
    """

    def __init__(
        self,
        connections: Connections,
        make_inner: Callable[[LimitedConnection], asyncio.Protocol],
    ) -> None:
        self.has_asked = False
        self._connections = connections
        self._make_inner = make_inner
        self._inner: asyncio.Protocol | None = None
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._in_head = True
        self._is_quiet = True
        self._is_stuck = False
        self._early = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._connections.is_closed:
            transport.abort()
        elif not self._connections.admit():
            self._connections.refused.add(self)
            transport.write(BUSY)
            transport.write_eof()
            # Closing at once with the request unread would reset the connection before the client
            # has seen the 503.
            self._start_timer(BUSY_SECONDS)
        else:
            self._inner = self._make_inner(self)
            self._inner.connection_made(transport)
            self.wait()

    def data_received(self, data: bytes) -> None:
        if self._inner is None:
            return
        if self in self._connections.served:
            # uvicorn would read without a limit while it answers; the next request waits here.
            self._early += data
            if len(self._early) > MAX_EARLY:
                self.drop()
            return
        if self._is_quiet:
            self._is_quiet = False
            self._start_timer()
        if self._in_head:
            # RFC 9110, 5.5: a NUL in a header becomes a space; then the header is judged as usual.
            head, end, rest = data.partition(HEAD_END)
            self._in_head = not end
            data = head.replace(b"\0", b" ") + end + rest
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._inner is not None else None

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        self._transport = None
        if self._inner is not None:
            self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._is_stuck = True
            self._inner.pause_writing()
            self._start_timer()

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._is_stuck = False
            self._inner.resume_writing()
            if self in self._connections.served:
                self._stop_timer()

    def wait(self) -> None:
        """Wait for the next request, within the time limit."""
        if self._transport is None:
            return
        if self._transport.is_closing():
            self._start_timer()  # for the part of the answer that the client has not read
            return
        self._connections.served.discard(self)
        self._connections.waiting[self] = None
        self._in_head = self._is_quiet = True
        self._start_timer()
        if self._early:
            early, self._early = self._early, b""
            asyncio.get_running_loop().call_soon(self.data_received, early)

    def serve(self) -> None:
        """Keep the place of this connection: its request is complete and carries the token."""
        if self in self._connections.waiting:
            del self._connections.waiting[self]
            self._connections.served.add(self)
        self.has_asked = True
        if not self._is_stuck:  # a new request without having read the last answer
            self._stop_timer()

    def finish(self) -> None:
        """Close the connection when what has been written is sent."""
        if self._transport is not None:
            self._transport.close()

    def drop(self) -> None:
        """Close the connection and discard what the client has not read."""
        self._forget()
        if self._transport is not None:
            # Otherwise the kernel would keep the unread bytes for minutes.
            with suppress(OSError):
                self._transport.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, _RESET
                )
            self._transport.abort()

    def _start_timer(self, seconds: float | None = None) -> None:
        self._stop_timer()
        seconds = self._connections.limits.seconds if seconds is None else seconds
        self._timer = asyncio.get_running_loop().call_later(seconds, self.drop)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _forget(self) -> None:
        self._stop_timer()
        self._connections.waiting.pop(self, None)
        self._connections.served.discard(self)
        self._connections.refused.discard(self)
