"""Who is connected, for how long: a protocol in front of uvicorn's, which has no limit for a client
that says nothing.

In: connections. Out: bytes for uvicorn, and for everybody a bounded number of seconds to say
something, to finish saying it, and to read the answer. When every place is taken a new connection
gets the place of one that has not asked anything yet, oldest first: a crowd of idle or slow clients
cannot keep a good one out. Only who is being answered keeps its place."""

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
MOST_EARLY = 128 << 10
"""Bytes a client may send ahead while it is being answered; few clients send any."""
_RESET = struct.pack("ii", 1, 0) if os.name == "posix" else struct.pack("hh", 1, 0)


class Limits(NamedTuple):
    """How many and how long."""

    connections: int = 64
    sessions: int = 256
    seconds: float = 30.0
    """For a request to begin, for it to arrive as a whole, and for an answer to be taken."""


class Crowd:
    """All connections of one server."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.waiting: dict[Gate, None] = {}
        """Those we wait for, in the order they began."""
        self.served: set[Gate] = set()
        self.refused: set[Gate] = set()
        """Those who are being told that there is no place."""
        self.is_closed = False

    def admit(self) -> bool:
        """Make room for one more; False when everybody is being answered."""
        if len(self.waiting) + len(self.served) < self.limits.connections:
            return True
        # Who has asked something before is probably a client at rest; who never has goes first.
        victim = next((gate for gate in self.waiting if not gate.has_asked), None) or next(
            iter(self.waiting), None
        )
        if victim is None:
            return False
        victim.drop()
        return True

    def close(self) -> None:
        """Let everybody go, and whoever still comes."""
        self.is_closed = True
        for gate in [*self.waiting, *self.served, *self.refused]:
            gate.drop()


class Gate(asyncio.Protocol):
    """One connection.

    `serve` and `wait` are called by the guard: a request is there as a whole; its answer is given.
    """

    def __init__(self, crowd: Crowd, make_inner: Callable[[Gate], asyncio.Protocol]) -> None:
        self.has_asked = False
        self._crowd = crowd
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
        if self._crowd.is_closed:
            transport.abort()
        elif not self._crowd.admit():
            self._crowd.refused.add(self)
            transport.write(BUSY)
            transport.write_eof()
            # Closed at once, with its request unread, the client would be told of a reset and not
            # of this.
            self._start_timer(BUSY_SECONDS)
        else:
            self._inner = self._make_inner(self)
            self._inner.connection_made(transport)
            self.wait()

    def data_received(self, data: bytes) -> None:
        if self._inner is None:
            return
        if self in self._crowd.served:
            # uvicorn would read on and on while it answers; here the next request waits for its
            # turn.
            self._early += data
            if len(self._early) > MOST_EARLY:
                self.drop()
            return
        if self._is_quiet:
            self._is_quiet = False
            self._start_timer()
        if self._in_head:
            # RFC 9110, 5.5: a NUL in a header is a space, and what is left of it is refused for
            # what it says.
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
            if self in self._crowd.served:
                self._stop_timer()

    def wait(self) -> None:
        """The next request is awaited, and may not take longer than the limit."""
        if self._transport is None:
            return
        if self._transport.is_closing():
            self._start_timer()  # for what is still to be read
            return
        self._crowd.served.discard(self)
        self._crowd.waiting[self] = None
        self._in_head = self._is_quiet = True
        self._start_timer()
        if self._early:
            early, self._early = self._early, b""
            asyncio.get_running_loop().call_soon(self.data_received, early)

    def serve(self) -> None:
        """A request is there as a whole and from somebody with the token: from here on it keeps its
        place.
        """
        if self in self._crowd.waiting:
            del self._crowd.waiting[self]
            self._crowd.served.add(self)
        self.has_asked = True
        if not self._is_stuck:  # it asks again without having read
            self._stop_timer()

    def drop(self) -> None:
        """End the connection now, and what the system still holds for it."""
        self._forget()
        if self._transport is not None:
            # Without it the system would keep what the client has not read for minutes, and tell it
            # nothing.
            with suppress(OSError):
                self._transport.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, _RESET
                )
            self._transport.abort()

    def _start_timer(self, seconds: float | None = None) -> None:
        self._stop_timer()
        seconds = self._crowd.limits.seconds if seconds is None else seconds
        self._timer = asyncio.get_running_loop().call_later(seconds, self.drop)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _forget(self) -> None:
        self._stop_timer()
        self._crowd.waiting.pop(self, None)
        self._crowd.served.discard(self)
        self._crowd.refused.discard(self)
