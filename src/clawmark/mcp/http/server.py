"""MCP over streamable HTTP: a loopback server with one route, a gate and a guard before it.

In: an address, a token and the MCP server. Out: a running HTTP server until it is told to stop.
uvicorn's protocol parses the requests; its server is not used, because it wakes up ten times a
second and knows no limit for idle connections."""

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

from clawmark.mcp.http.access_control import LARGEST_BODY, Guard, Rules, Unreadable
from clawmark.mcp.http.connection_limits import Crowd, Gate, Limits
from clawmark.mcp.http.session_limit import Sessions
from clawmark.mcp.http.token import STRONG_BYTES
from clawmark.mcp.messages import Refusal, dump_message, read_message
from clawmark.mcp.shutdown import ends_on_signals
from clawmark.model.errors import ClawmarkError, ConfigError

PATH = "/mcp"
PORT = 8377
SESSION_SECONDS = 1800.0
ACCEPTED_AT_ONCE = 16
"""Connections taken in one turn of the loop: fewer than there are places, so that a request that
came with a connection is read before a crowd behind it could take its place."""
QUEUE = 1024
LARGEST_UNREAD = 128 << 10
"""What is kept of a head that has no end; the guard refuses smaller ones, and can then say why."""
_LOCAL = ("127.0.0.1", "localhost", "[::1]")


class Address(NamedTuple):
    """Where to listen, and under which names besides the loopback ones clients may call."""

    host: str = "127.0.0.1"
    port: int = PORT
    names: tuple[str, ...] = ()


def check_address(address: Address, token: bytes, *, allow_remote: bool) -> None:
    """Refuse an address that others can reach, unless that is wanted and the token is strong."""
    try:
        is_loopback = ipaddress.ip_address(address.host).is_loopback
    except ValueError:
        raise ConfigError(
            f"{address.host[:80]!a} is no IP address.", hint="Use --host 127.0.0.1 or ::1."
        ) from None
    if is_loopback:
        return
    if not allow_remote:
        raise ConfigError(
            f"{address.host} can be reached by other machines.",
            hint="Leave --host away to serve this machine only, or add --allow-remote.",
        )
    if len(token) < STRONG_BYTES:
        raise ConfigError(
            f"The token is too short to be reached by other machines: {len(token)} of at least "
            f"{STRONG_BYTES} bytes.",
            hint="Delete the token file, and the next start makes a strong one.",
        )


def rules_for(address: Address, token: bytes) -> Rules:
    """The guard's rules for a bound address."""
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
    """Serve until a signal comes; `ready` is told the address once connections are taken.

    The exit code.
    """
    ending = ends_on_signals()
    limits = limits or Limits()
    # Every connection may open a session at the same moment, before an idle one has been closed for
    # it.
    most_sessions = limits.sessions + limits.connections
    manager = StreamableHTTPSessionManager(
        server,
        max_request_body_size=LARGEST_BODY,
        session_idle_timeout=SESSION_SECONDS,
        max_sessions=most_sessions,
    )
    sessions = Sessions(manager.handle_request, limits.sessions)
    crowd = Crowd(limits)
    with _bound(address) as listening:
        bound = address._replace(port=listening.getsockname()[1])
        guard = Guard(sessions, rules_for(bound, token), _check_body)
        async with manager.run():
            connections = await _listen(listening, crowd, guard)
            ready(bound)
            try:
                await ending.wait()
            finally:
                connections.close()
                crowd.close()
    return ending.code


def _without_polling() -> None:
    """sse-starlette would look twice a second whether uvicorn's server is about to stop; there is
    none here.
    """
    with suppress(ImportError, AttributeError):
        from sse_starlette.sse import _get_shutdown_state

        _get_shutdown_state().watcher_started = True


async def _listen(listening: socket.socket, crowd: Crowd, guard: Guard) -> asyncio.Server:
    # A client that was refused or went away is no news; an error of ours is.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    logging.getLogger("mcp").addHandler(logging.NullHandler())
    config = Config(
        guard,
        http=H11Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        h11_max_incomplete_event_size=LARGEST_UNREAD,
        timeout_keep_alive=int(crowd.limits.seconds) + 1,
    )
    config.load()
    _without_polling()
    state = ServerState()

    def connection() -> Gate:
        return Gate(crowd, lambda gate: H11Protocol(config, state, {"gate": gate}))

    server = await asyncio.get_running_loop().create_server(
        connection, sock=listening, backlog=ACCEPTED_AT_ONCE
    )
    listening.listen(QUEUE)  # the system may queue more than is taken at once
    return server


def _bound(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        listening = socket.create_server((address.host, address.port), family=family)
        if hasattr(socket, "TCP_DEFER_ACCEPT"):
            # Linux then shows us a connection only when something was said on it, or a second
            # later.
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 1)
        return listening
    except OSError as error:
        raise ClawmarkError(
            f"Cannot listen on {address.host} port {address.port}: {error.strerror}.",
            hint="Name another with --port.",
        ) from error


def _check_body(body: bytes) -> bytes | Unreadable:
    """Check that a posted body is a message, and return the bytes that the SDK will parse."""
    message = read_message(body)
    return (
        Unreadable(dump_message(message.message()))
        if isinstance(message, Refusal)
        else dump_message(message)
    )
