"""Run the server in this process until a signal arrives, and stop it without losing a request."""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import urlsplit

from clawmark.config.schema.serve import ServeOptions
from clawmark.model.errors import ConfigError
from clawmark.model.values import Query
from clawmark.net.server.connection_limits import Connections, Limits
from clawmark.net.server.listening import listen
from clawmark.net.server.requests import host_headers
from clawmark.serve.app import make_app
from clawmark.serve.clients import read_proxies
from clawmark.serve.gate import Gate, GateOptions
from clawmark.serve.grants import Team
from clawmark.serve.mcp import McpEndpoint
from clawmark.serve.metrics import Metrics
from clawmark.serve.rest.bodies import SearchRequest
from clawmark.serve.service import Service, ServiceOptions
from clawmark.system.shutdown import shutdown_on_signals

MOST_CONNECTIONS = 1024
FLUSH_SECONDS = 2.0
"""How long clients have to take the last answers when the server stops."""
BODY_SHARE = 0.8
"""A body is refused with 408 after this part of the time after which its connection is closed."""


class Parts(NamedTuple):
    """What the server is made of."""

    team: Team
    metrics: Metrics
    options: ServeOptions
    make_query: Callable[..., Query]


def check_options(options: ServeOptions) -> None:
    """Refuse an address that other machines can reach without a proxy that encrypts."""
    try:
        is_loopback = ipaddress.ip_address(options.host).is_loopback
    except ValueError:
        raise ConfigError(
            f"serve.host is {options.host[:80]!a}, which is not an IP address.",
            key="serve.host",
            hint="Use 127.0.0.1 or ::1 for this machine, 0.0.0.0 or :: for all.",
        ) from None
    read_proxies(options.trusted_proxies)
    if options.public_url and not options.public_url.lower().startswith("https://"):
        raise ConfigError(
            "serve.publicUrl must begin with https://, because tokens are sent there.",
            key="serve.publicUrl",
            hint="Put a reverse proxy with TLS in front; docs/how-to/serve.md has examples.",
        )
    if is_loopback:
        return
    missing = "publicUrl" if not options.public_url else ""
    if not missing and not options.trusted_proxies:
        missing = "trustedProxies"
    if missing:
        raise ConfigError(
            f"{options.host} can be reached by other machines, so serve.{missing} must be set.",
            key=f"serve.{missing}",
            hint="Listen on 127.0.0.1, or set serve.publicUrl to the https address of the reverse "
            "proxy and serve.trustedProxies to its addresses.",
        )


def public_hosts(options: ServeOptions, port: int) -> frozenset[bytes]:
    """Return the Host headers that name this server."""
    hosts = host_headers(options.host, port)
    name = urlsplit(options.public_url).netloc.lower().encode()
    return hosts | {name} if name else hosts


async def serve(parts: Parts, listening: socket.socket, ready: Callable[[], None]) -> int:
    """Serve until a signal arrives; `ready` is called once requests are answered.

    Then new requests get 503, running ones are finished within `shutdownSeconds`, and 0 is
    returned; 1 if some had to be ended."""
    shutdown = shutdown_on_signals()
    options, metrics = parts.options, parts.metrics
    port: int = listening.getsockname()[1]
    service = Service(
        parts.team,
        metrics,
        ServiceOptions(
            make_query=_completer(parts.make_query),
            threads=options.connections,
            per_token=options.rate_limits.per_token,
            public_url=options.public_url.rstrip("/"),
            hosts=public_hosts(options, port),
        ),
    )
    mcp = McpEndpoint(service)
    app = make_app(service, mcp, lambda: gate.is_stopping)
    gate = Gate(app, metrics, _gate_options(options))
    connections = Connections(
        Limits(connections=MOST_CONNECTIONS, seconds=float(options.request_seconds))
    )
    async with mcp.running():
        listener = await listen(listening, connections, gate)
        metrics.set("clawmark_workers", 1)
        ready()
        try:
            await shutdown.wait()
            is_drained = await gate.drain(options.shutdown_seconds)
            listener.close()
            await connections.finish(FLUSH_SECONDS)
        finally:
            listener.close()
            connections.close()
    return 0 if is_drained else 1


def _gate_options(options: ServeOptions) -> GateOptions:
    return GateOptions(
        max_body=options.max_body_bytes,
        body_seconds=options.request_seconds * BODY_SHARE,
        per_address=options.rate_limits.per_address,
        proxies=read_proxies(options.trusted_proxies),
        log=_log if options.access_log else None,
    )


def _completer(make_query: Callable[..., Query]) -> Callable[[SearchRequest], Query]:
    def complete(asked: SearchRequest) -> Query:
        return make_query(
            asked.query,
            max_results=asked.max_results,
            min_score=asked.min_score,
            since=asked.since,
            until=asked.until,
            path=asked.path,
            explain=asked.explain,
        )

    return complete


def _log(line: str) -> None:
    """Write a line to standard error, where systemd and containers keep it."""
    sys.stderr.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {line}\n")
    sys.stderr.flush()
