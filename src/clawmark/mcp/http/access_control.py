"""Check the Host, Origin, token, size and type of every HTTP request.

A request that fails is answered with 400 (the body is not a message), 401 (no token or a wrong
one), 403 (foreign Host or Origin), 405 (method), 413 or 431 (too large) or 415 (not JSON). No
answer carries a CORS header.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, MutableMapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

from clawmark.net.server.requests import (
    Application,
    Headers,
    Receive,
    Rejection,
    Scope,
    Send,
    check_host_and_origin,
    read_body,
    replay,
    security_headers,
    values_of,
    with_security_headers,
)

MAX_BODY = 1 << 20
MAX_HEAD = 32 << 10
METHODS = ("GET", "POST", "DELETE")

SECURITY_HEADERS = security_headers(form_action="'none'", referrer="no-referrer")


class Rules(NamedTuple):
    """Which requests are accepted."""

    hosts: frozenset[bytes]
    """The Host headers that name this server, with the port, in lower case."""
    token: bytes
    paths: frozenset[str]


def check_request(method: str, path: str, headers: Headers, rules: Rules) -> Rejection | None:
    """Check everything that precedes the body; Host and Origin come first, for every path."""
    foreign = check_host_and_origin(headers, rules.hosts)
    if foreign is not None:
        return foreign
    if method not in METHODS:
        return Rejection(405, "Only GET, POST and DELETE are supported.")
    if method == "POST" and not _is_json(values_of(headers, b"content-type")):
        return Rejection(415, "The body must be application/json.")
    if not _has_token(values_of(headers, b"authorization"), rules.token):
        return Rejection(401, "Send the token from the state folder as `Authorization: Bearer …`.")
    if sum(len(name) + len(value) + 4 for name, value in headers) + len(path) > MAX_HEAD:
        return Rejection(431, f"The headers are larger than {MAX_HEAD:,} bytes.")
    if any(
        int(length) > MAX_BODY
        for length in values_of(headers, b"content-length")
        if length.isdigit()
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
                message["headers"] = with_security_headers(
                    message.get("headers", ()), SECURITY_HEADERS
                )
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                connection.wait()

        rejection = check_request(scope["method"], scope["path"], scope["headers"], self._rules)
        if rejection is not None:
            return await _reject(rejection, answer)
        body = await read_body(receive, MAX_BODY)
        if body is None:
            return None  # the client is gone
        if len(body) > MAX_BODY:
            return await _reject(_TOO_LARGE, answer)
        checked = self._check(body) if scope["method"] == "POST" else body
        if isinstance(checked, InvalidBody):
            return await _reply(400, checked.answer, answer)
        connection.serve()
        await self._application(scope, replay(checked, receive), answer)
        return None


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


def _is_json(types: Sequence[bytes]) -> bool:
    return len(types) == 1 and types[0].partition(b";")[0].strip().lower() == b"application/json"


def _has_token(given: Sequence[bytes], token: bytes) -> bool:
    """Whether there is exactly one header with the token; compared in constant time."""
    scheme, _, value = (given[0] if len(given) == 1 else b"").partition(b" ")
    return hmac.compare_digest(value.strip(), token) and scheme.lower() == b"bearer"
