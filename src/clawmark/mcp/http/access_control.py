"""Check the Host, Origin, token, size and type of every HTTP request.

A request that fails is answered with 400 (the body is not a message), 401 (no token or a wrong
one), 403 (foreign Host or Origin), 405 (method), 413 or 431 (too large) or 415 (not JSON). No
answer carries a CORS header.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers: TypeAlias = Sequence[tuple[bytes, bytes]]

MAX_BODY = 1 << 20
MAX_HEAD = 32 << 10
METHODS = ("GET", "POST", "DELETE")

SECURITY_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src "
        b"'self'; base-uri 'none'; "
        b"form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""Sent with every answer, so that a browser does not run, frame, cache or share it."""


class Rules(NamedTuple):
    """Which requests are accepted."""

    hosts: frozenset[bytes]
    """The Host headers that name this server, with the port, in lower case."""
    token: bytes
    paths: frozenset[str]

    @property
    def origins(self) -> frozenset[bytes]:
        """The origins of this server's own pages."""
        return frozenset(b"http://" + host for host in self.hosts)


class Rejection(NamedTuple):
    """Why a request is answered with an error status."""

    status: int
    reason: str


def check_request(method: str, path: str, headers: Headers, rules: Rules) -> Rejection | None:
    """Check everything that precedes the body; Host and Origin come first, for every path."""
    hosts, origins = _all(headers, b"host"), _all(headers, b"origin")
    if len(hosts) != 1 or hosts[0].lower() not in rules.hosts:
        return Rejection(403, "The Host header does not name this server.")
    if len(origins) > 1 or not rules.origins.issuperset(origins):
        return Rejection(403, "Pages of other sites may not call this server.")
    if method not in METHODS:
        return Rejection(405, "Only GET, POST and DELETE are supported.")
    if method == "POST" and not _is_json(_all(headers, b"content-type")):
        return Rejection(415, "The body must be application/json.")
    if not _has_token(_all(headers, b"authorization"), rules.token):
        return Rejection(401, "Send the token from the state folder as `Authorization: Bearer …`.")
    if sum(len(name) + len(value) + 4 for name, value in headers) + len(path) > MAX_HEAD:
        return Rejection(431, f"The headers are larger than {MAX_HEAD:,} bytes.")
    if any(
        int(length) > MAX_BODY for length in _all(headers, b"content-length") if length.isdigit()
    ):
        return _TOO_LARGE
    return None if path in rules.paths else Rejection(404, "There is no such path.")


_TOO_LARGE = Rejection(413, f"The body is larger than {MAX_BODY:,} bytes.")


class InvalidBody(NamedTuple):
    """A posted body is not a message; `answer` is the body of the 400."""

    answer: bytes


class AccessControl:
    """An ASGI application that passes accepted requests on to another.

    `check` takes a posted body and returns the message to pass on, or why it is not one.
    """

    def __init__(
        self, application: Application, rules: Rules, check: Callable[[bytes], bytes | InvalidBody]
    ) -> None:
        self._application = application
        self._rules = rules
        self._check = check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = scope["state"]["connection"]

        async def answer(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*_without_ours(message.get("headers", ())), *SECURITY_HEADERS]
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                connection.wait()

        rejection = check_request(scope["method"], scope["path"], scope["headers"], self._rules)
        if rejection is not None:
            return await _reject(rejection, answer)
        body = await _whole_body(receive)
        if body is None:
            return None  # the client is gone
        if len(body) > MAX_BODY:
            return await _reject(_TOO_LARGE, answer)
        checked = self._check(body) if scope["method"] == "POST" else body
        if isinstance(checked, InvalidBody):
            return await _reply(400, checked.answer, answer)
        connection.serve()
        await self._application(scope, _replay(checked, receive), answer)
        return None


async def _whole_body(receive: Receive) -> bytes | None:
    """Read the body, up to a little over the limit; None if the client disconnects first."""
    parts, size = list[bytes](), 0
    while size <= MAX_BODY:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if not message.get("more_body"):
            break
    return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that yields the whole body first, then what follows it."""
    waiting = [body]

    async def replayed() -> MutableMapping[str, Any]:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return replayed


async def _reject(rejection: Rejection, send: Send) -> None:
    await _reply(rejection.status, json.dumps({"error": rejection.reason}).encode(), send)


async def _reply(status: int, body: bytes, send: Send) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        headers.append((b"allow", ", ".join(METHODS).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _all(headers: Headers, name: bytes) -> list[bytes]:
    return [value for given, value in headers if given == name]


def _is_json(types: Sequence[bytes]) -> bool:
    return len(types) == 1 and types[0].partition(b";")[0].strip().lower() == b"application/json"


def _has_token(given: Sequence[bytes], token: bytes) -> bool:
    """Whether there is exactly one header with the token; compared in constant time."""
    scheme, _, value = (given[0] if len(given) == 1 else b"").partition(b" ")
    return hmac.compare_digest(value.strip(), token) and scheme.lower() == b"bearer"


def _without_ours(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Remove CORS headers and those that `SECURITY_HEADERS` replaces."""
    ours = {name for name, _ in SECURITY_HEADERS}
    return [
        (name, value)
        for name, value in headers
        if name.lower() not in ours and not name.lower().startswith(b"access-control-")
    ]
