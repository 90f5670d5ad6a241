"""MCP over streamable HTTP: a server on the loopback address with one route.

uvicorn's protocol parses the requests. Its server is not used, because it wakes up ten times a
second and has no limit for idle connections."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from clawmark.mcp.http.access_control import MAX_BODY, AccessControl, InvalidBody, Rules
from clawmark.mcp.http.connection_limits import Connections, LimitedConnection, Limits
from clawmark.mcp.http.session_limit import SessionLimit
from clawmark.mcp.http.token import STRONG_BYTES
from clawmark.mcp.messages import InvalidMessage, dump_message, read_message
from clawmark.mcp.shutdown import shutdown_on_signals
from clawmark.model.errors import ClawmarkError, ConfigError

PATH = "/mcp"
PORT = 8377
SESSION_SECONDS = 1800.0
ACCEPTED_AT_ONCE = 16
"""Connections accepted in one turn of the event loop: fewer than there are places, so that a
request that arrives with its connection is read before later connections can replace it."""
QUEUE = 1024
MAX_UNPARSED = 128 << 10
"""Bytes kept of unfinished headers; below this, `AccessControl` refuses with a reason."""
_LOCAL = ("127.0.0.1", "localhost", "[::1]")


class Address(NamedTuple):
    """Where to listen, and which names clients may use in addition to the loopback ones."""

    host: str = "127.0.0.1"
    port: int = PORT
    names: tuple[str, ...] = ()


def check_address(address: Address, token: bytes, *, allow_remote: bool) -> None:
    """Refuse an address other machines can reach, unless allowed and the token is strong."""
    try:
        is_loopback = ipaddress.ip_address(address.host).is_loopback
    except ValueError:
        raise ConfigError(
            f"{address.host[:80]!a} is not an IP address.", hint="Use --host 127.0.0.1 or ::1."
        ) from None
    if is_loopback:
        return
    if not allow_remote:
        raise ConfigError(
            f"{address.host} can be reached by other machines.",
            hint="Omit --host to serve this machine only, or add --allow-remote.",
        )
    if len(token) < STRONG_BYTES:
        raise ConfigError(
            f"The token is too short for a server that other machines can reach: {len(token)} of "
            f"at least {STRONG_BYTES} bytes.",
            hint="Delete the token file; the next start creates a strong one.",
        )


def rules_for(address: Address, token: bytes) -> Rules:
    """Return the access rules for a bound address."""
    own = f"[{address.host}]" if ":" in address.host else address.host
    names = {*_LOCAL, own, *address.names}
    return Rules(
        frozenset(f"{name.lower()}:{address.port}".encode() for name in names),
        token,
        frozenset({PATH}),
    )


async def serve_http(
    server: Server[Any],
    address: Address,
    token: bytes,
    ready: Callable[[Address], None],
    limits: Limits | None = None,
) -> int:
    """Serve until a signal arrives and return the exit code; `ready` is called once listening."""
    shutdown = shutdown_on_signals()
    limits = limits or Limits()
    # Every connection may open a session at once, before idle ones have been closed.
    manager = StreamableHTTPSessionManager(
        server,
        max_request_body_size=MAX_BODY,
        session_idle_timeout=SESSION_SECONDS,
        max_sessions=limits.sessions + limits.connections,
    )
    sessions = SessionLimit(manager.handle_request, limits.sessions)
    connections = Connections(limits)
    with _bind(address) as listening:
        bound = address._replace(port=listening.getsockname()[1])
        application = AccessControl(sessions, rules_for(bound, token), _check_body)
        async with manager.run():
            listener = await _listen(listening, connections, application)
            ready(bound)
            try:
                await shutdown.wait()
            finally:
                listener.close()
                connections.close()
    return shutdown.code


def _disable_sse_polling() -> None:
    """Stop sse-starlette from asking twice a second whether uvicorn's server is shutting down."""
    with suppress(ImportError, AttributeError):
        # Imported late: a private function that other versions may not have.
        from sse_starlette.sse import _get_shutdown_state

        _get_shutdown_state().watcher_started = True


async def _listen(
    listening: socket.socket, connections: Connections, application: AccessControl
) -> asyncio.Server:
    # Rejected and disconnected clients are not logged; our own errors are.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    logging.getLogger("mcp").addHandler(logging.NullHandler())
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
    _disable_sse_polling()
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


def _bind(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        listening = socket.create_server((address.host, address.port), family=family)
        if hasattr(socket, "TCP_DEFER_ACCEPT"):
            # Linux then reports a connection when its first bytes arrive, or after a second.
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 1)
        return listening
    except OSError as error:
        raise ClawmarkError(
            f"Cannot listen on {address.host} port {address.port}: {error.strerror}.",
            hint="Choose another port with --port.",
        ) from error


def _check_body(body: bytes) -> bytes | InvalidBody:
    """Check that a posted body is a message, and return the bytes that the SDK will parse."""
    message = read_message(body)
    return (
        InvalidBody(dump_message(message.response()))
        if isinstance(message, InvalidMessage)
        else dump_message(message)
    )
