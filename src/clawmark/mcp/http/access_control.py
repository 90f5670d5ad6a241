"""Who may speak to the HTTP server: an ASGI application in front of the real one, which every
request passes first.

In: a request of anybody, a web page included. Out: the same request with its whole body, or a
refusal: 400 a body that is no message, 401 no or another token, 403 a foreign Host or Origin, 405 a
method nobody needs, 413 and 431 too large, 415 no JSON. No answer carries a CORS header. How long a
client may take, and how many there may be, is left to `gate`."""

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

LARGEST_BODY = 1 << 20
LARGEST_HEAD = 32 << 10
METHODS = ("GET", "POST", "DELETE")

ANSWER_HEADERS = (
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
"""What every answer carries, so that a browser neither runs, frames, keeps nor shares it."""


class Rules(NamedTuple):
    """Who is let in."""

    hosts: frozenset[bytes]
    """The Host headers that name this server, port included, in lower case."""
    token: bytes
    paths: frozenset[str]

    @property
    def origins(self) -> frozenset[bytes]:
        """The pages that are this server's own."""
        return frozenset(b"http://" + host for host in self.hosts)


class Refused(NamedTuple):
    """An answer that ends a request before anybody has looked at it."""

    status: int
    reason: str


def judge(method: str, path: str, headers: Headers, rules: Rules) -> Refused | None:
    """Why a request is refused by what stands before its body.

    Host and Origin come first, for every path alike.
    """
    hosts, origins = _all(headers, b"host"), _all(headers, b"origin")
    if len(hosts) != 1 or hosts[0].lower() not in rules.hosts:
        return Refused(403, "The Host header does not name this server.")
    if len(origins) > 1 or not rules.origins.issuperset(origins):
        return Refused(403, "Web pages of other sites may not call this server.")
    if method not in METHODS:
        return Refused(405, "Only GET, POST and DELETE are used here.")
    if method == "POST" and not _is_json(_all(headers, b"content-type")):
        return Refused(415, "The body must be application/json.")
    if not _has_token(_all(headers, b"authorization"), rules.token):
        return Refused(401, "Send the token of the state folder as `Authorization: Bearer …`.")
    if sum(len(name) + len(value) + 4 for name, value in headers) + len(path) > LARGEST_HEAD:
        return Refused(431, f"The headers are larger than {LARGEST_HEAD:,} bytes.")
    if any(
        int(length) > LARGEST_BODY
        for length in _all(headers, b"content-length")
        if length.isdigit()
    ):
        return _TOO_LARGE
    return None if path in rules.paths else Refused(404, "There is nothing here.")


_TOO_LARGE = Refused(413, f"The body is larger than {LARGEST_BODY:,} bytes.")


class Unreadable(NamedTuple):
    """The body of a 400: why a posted body is not a message."""

    answer: bytes


class Guard:
    """The application in front.

    `check` takes a posted body and returns the message to pass on, or why it is not one.
    """

    def __init__(
        self, inside: Application, rules: Rules, check: Callable[[bytes], bytes | Unreadable]
    ) -> None:
        self._inside = inside
        self._rules = rules
        self._check = check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gate = scope["state"]["gate"]

        async def answer(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*_kept(message.get("headers", ())), *ANSWER_HEADERS]
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                gate.wait()

        refused = judge(scope["method"], scope["path"], scope["headers"], self._rules)
        if refused is not None:
            return await _refuse(refused, answer)
        body = await _whole_body(receive)
        if body is None:
            return None  # the client is gone
        if len(body) > LARGEST_BODY:
            return await _refuse(_TOO_LARGE, answer)
        checked = self._check(body) if scope["method"] == "POST" else body
        if isinstance(checked, Unreadable):
            return await _reply(400, checked.answer, answer)
        gate.serve()
        await self._inside(scope, _replay(checked, receive), answer)
        return None


async def _whole_body(receive: Receive) -> bytes | None:
    """Everything the client sends, or a little more than is allowed; None when it went away first."""
    parts, size = list[bytes](), 0
    while size <= LARGEST_BODY:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if not message.get("more_body"):
            break
    return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """What the application inside receives: the body at once, then whatever comes after it."""
    waiting = [body]

    async def replayed() -> MutableMapping[str, Any]:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return replayed


async def _refuse(refused: Refused, send: Send) -> None:
    await _reply(refused.status, json.dumps({"error": refused.reason}).encode(), send)


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
    """Exactly one header with exactly the token; compared in the same time whatever is wrong with
    it.
    """
    scheme, _, value = (given[0] if len(given) == 1 else b"").partition(b" ")
    return hmac.compare_digest(value.strip(), token) and scheme.lower() == b"bearer"


def _kept(headers: Headers) -> list[tuple[bytes, bytes]]:
    """The application's headers without those that are ours to say."""
    ours = {name for name, _ in ANSWER_HEADERS}
    return [
        (name, value)
        for name, value in headers
        if name.lower() not in ours and not name.lower().startswith(b"access-control-")
    ]
