"""Checks that every HTTP request to a server on this machine passes, and headers of its answers.

A page of another site can send requests to the loopback address. Its Origin header gives it away,
and so does the Host header when its name has been pointed to this machine (DNS rebinding)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from typing import Any, NamedTuple, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers: TypeAlias = Sequence[tuple[bytes, bytes]]

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


class Rejection(NamedTuple):
    """Why a request is answered with an error status."""

    status: int
    reason: str


def host_headers(host: str, port: int, names: Iterable[str] = ()) -> frozenset[bytes]:
    """Return the Host headers that name a server: with the port, in lower case."""
    own = f"[{host}]" if ":" in host else host
    return frozenset(f"{name.lower()}:{port}".encode() for name in {*LOOPBACK_NAMES, own, *names})


def check_host_and_origin(headers: Headers, hosts: frozenset[bytes]) -> Rejection | None:
    """Reject a request that does not name this server, or that a page of another site makes."""
    given, origins = values_of(headers, b"host"), values_of(headers, b"origin")
    if len(given) != 1 or given[0].lower() not in hosts:
        return Rejection(403, "The Host header does not name this server.")
    own = {b"http://" + host for host in hosts}
    if len(origins) > 1 or not own.issuperset(origins):
        return Rejection(403, "Pages of other sites may not call this server.")
    return None


def security_headers(*, form_action: str, referrer: str) -> Headers:
    """Return the headers that keep a browser from running, framing, caching or sharing an answer.

    `form_action` is where forms may be sent: `'self'` or `'none'`."""
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        f"img-src 'self'; base-uri 'none'; form-action {form_action}; frame-ancestors 'none'"
    )
    return (
        (b"content-security-policy", policy.encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", referrer.encode()),
        (b"cache-control", b"no-store"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
    )


def with_security_headers(headers: Headers, ours: Headers) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer with ours instead of its own, and without CORS headers."""
    replaced = {name for name, _ in ours}
    kept = [
        (name, value)
        for name, value in headers
        if name.lower() not in replaced and not name.lower().startswith(b"access-control-")
    ]
    return [*kept, *ours]


async def read_body(receive: Receive, limit: int) -> bytes | None:
    """Read the body, up to a little over the limit; None if the client disconnects first."""
    parts, size = list[bytes](), 0
    while size <= limit:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if not message.get("more_body"):
            break
    return b"".join(parts)


def replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that yields the whole body first, then what follows it."""
    waiting = [body]

    async def replayed() -> MutableMapping[str, Any]:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return replayed


def values_of(headers: Headers, name: bytes) -> list[bytes]:
    """Return the values of all headers with a name, which is in lower case."""
    return [value for given, value in headers if given == name]
