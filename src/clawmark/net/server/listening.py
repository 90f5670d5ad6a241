"""Listen on an address and serve an ASGI application there.

uvicorn's protocol parses the requests. Its server is not used, because it wakes up ten times a
second and has no limit for idle connections."""

from __future__ import annotations

import asyncio
import logging
import os
import socket

from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from clawmark.model.errors import ClawmarkError
from clawmark.net.server.connection_limits import Connections, LimitedConnection
from clawmark.net.server.requests import Application

ACCEPTED_AT_ONCE = 16
"""Connections accepted in one turn of the event loop: fewer than there are places, so that a
request that arrives with its connection is read before later connections can replace it."""
QUEUE = 1024
MAX_UNPARSED = 128 << 10
"""Bytes kept of unfinished headers; below this, the application refuses with a reason."""


def bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address; port 0 chooses a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
        if hasattr(socket, "TCP_DEFER_ACCEPT"):
            # Linux then reports a connection when its first bytes arrive, or after a second.
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 1)
        return listening
    except OSError as error:
        raise ClawmarkError(
            f"Cannot listen on {host} port {port}: {os.strerror(error.errno or 0)}.",
            hint="Choose another port with --port.",
        ) from error


async def listen(
    listening: socket.socket, connections: Connections, application: Application
) -> asyncio.Server:
    """Serve an application on a bound socket.

    The application finds its connection in `scope["state"]["connection"]`. It calls `serve` on it
    when a complete request was accepted, and `wait` when the answer was sent."""
    # Rejected and disconnected clients are not logged; our own errors are.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    config = Config(
        application,
        http=H11Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        h11_max_incomplete_event_size=MAX_UNPARSED,
        timeout_keep_alive=int(connections.limits.seconds) + 1,
    )
    config.load()
    state = ServerState()

    def connection() -> LimitedConnection:
        return LimitedConnection(
            connections, lambda one: H11Protocol(config, state, {"connection": one})
        )

    server = await asyncio.get_running_loop().create_server(
        connection, sock=listening, backlog=ACCEPTED_AT_ONCE
    )
    listening.listen(QUEUE)  # the kernel may queue more than are accepted at once
    return server
