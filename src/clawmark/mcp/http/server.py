"""MCP over streamable HTTP: a server on the loopback address with one route."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from clawmark.mcp.http.access_control import MAX_BODY, AccessControl, InvalidBody, Rules
from clawmark.mcp.http.session_limit import SessionLimit
from clawmark.mcp.http.token import STRONG_BYTES
from clawmark.mcp.messages import InvalidMessage, dump_message, read_message
from clawmark.model.errors import ConfigError
from clawmark.net.server.connection_limits import Connections, Limits
from clawmark.net.server.listening import bind, listen
from clawmark.net.server.requests import host_headers
from clawmark.system.shutdown import shutdown_on_signals

PATH = "/mcp"
PORT = 8377
SESSION_SECONDS = 1800.0


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
    hosts = host_headers(address.host, address.port, address.names)
    return Rules(hosts, token, frozenset({PATH}))


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
    with bind(address.host, address.port) as listening:
        bound = address._replace(port=listening.getsockname()[1])
        application = AccessControl(sessions, rules_for(bound, token), _check_body)
        async with manager.run():
            logging.getLogger("mcp").addHandler(logging.NullHandler())
            _disable_sse_polling()
            listener = await listen(listening, connections, application)
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


def _check_body(body: bytes) -> bytes | InvalidBody:
    """Check that a posted body is a message, and return the bytes that the SDK will parse."""
    message = read_message(body)
    return (
        InvalidBody(dump_message(message.response()))
        if isinstance(message, InvalidMessage)
        else dump_message(message)
    )
