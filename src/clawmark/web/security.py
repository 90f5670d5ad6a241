"""Decide who may use the web page, and which headers its answers have.

The first address carries a token, which is exchanged for a cookie. Every request is checked for
its Host, its Origin and the cookie; a POST also needs the form token, which pages of other sites
cannot read."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable, MutableMapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs, parse_qsl, quote, urlencode

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

MAX_BODY = 8 << 20
"""A whole memory file, edited and sent back."""
MAX_HEAD = 32 << 10
STATIC = "/static/"
FORM_FIELD = "form_token"
FORM_HEADER = b"x-form-token"
TOKEN = "token"
# With `no-referrer`, browsers send `Origin: null` with forms of our own pages.
HEADERS = security_headers(form_action="'self'", referrer="same-origin")
_STATIC_HEADERS: Headers = tuple(
    (name, b"private, max-age=31536000, immutable" if name == b"cache-control" else value)
    for name, value in HEADERS
)
"""The address of a static file changes with its content, so that browsers may keep it."""
_FORM = b"application/x-www-form-urlencoded"


class FirstTokens:
    """The tokens that a first address may carry."""

    def __init__(self) -> None:
        self.printed = secrets.token_urlsafe(24)
        """Valid while the server runs: the user may follow the printed address again."""
        self._single_use = set[str]()

    def make_single_use(self) -> str:
        """Return a token that is valid once: the command line of a browser is not secret."""
        token = secrets.token_urlsafe(24)
        self._single_use.add(token)
        return token

    def accept(self, token: str) -> bool:
        """Whether a token is valid; a single-use token is used up."""
        if token in self._single_use:
            self._single_use.discard(token)
            return True
        return hmac.compare_digest(token.encode(), self.printed.encode())


class Access(NamedTuple):
    """What requests are checked against."""

    hosts: frozenset[bytes]
    """The Host headers that name this server."""
    key: bytes
    """The secret of the state folder, from which cookie and form token are made."""
    port: int
    first: FirstTokens

    @property
    def cookie_name(self) -> str:
        """Browsers send a cookie to all ports of a host, so that its name has the port."""
        return f"clawmark-{self.port}"

    @property
    def cookie(self) -> str:
        return self._derive("cookie")

    @property
    def form_token(self) -> str:
        return self._derive("form")

    def _derive(self, purpose: str) -> str:
        text = f"clawmark web {purpose} {self.port}".encode()
        return hmac.new(self.key, text, hashlib.sha256).hexdigest()


class Entry(NamedTuple):
    """A first address with a valid token: set the cookie, then continue without the token."""

    location: str


def check_request(scope: Scope, access: Access) -> Rejection | Entry | None:
    """Check everything that precedes the body; None accepts the request."""
    headers: Headers = scope["headers"]
    method, path = scope["method"], scope["path"]
    foreign = check_host_and_origin(headers, access.hosts)
    if foreign is not None:
        return foreign
    address = len(path) + len(scope["query_string"])
    if sum(len(name) + len(value) + 4 for name, value in headers) + address > MAX_HEAD:
        return Rejection(431, f"The address and the headers are larger than {MAX_HEAD:,} bytes.")
    if method not in ("GET", "HEAD", "POST"):
        return Rejection(405, "Only GET, HEAD and POST are supported.")
    if path.startswith(STATIC):
        return None
    given = parse_qs(scope["query_string"].decode("latin-1")).get(TOKEN)
    if method == "GET" and given and access.first.accept(given[0]):
        return Entry(_without_token(scope))
    if not _has_cookie(headers, access):
        return Rejection(
            401,
            "This browser has not been let in yet: open the address that `clawmark web` prints.",
        )
    return _check_post(headers) if method == "POST" else None


def _check_post(headers: Headers) -> Rejection | None:
    if not values_of(headers, b"origin"):
        return Rejection(403, "The Origin header is missing.")
    types = [one.partition(b";")[0].strip().lower() for one in values_of(headers, b"content-type")]
    if types != [_FORM]:
        return Rejection(415, "The body must be a form (application/x-www-form-urlencoded).")
    sizes = [int(size) for size in values_of(headers, b"content-length") if size.isdigit()]
    return _TOO_LARGE if any(size > MAX_BODY for size in sizes) else None


_NO_FORM_TOKEN = Rejection(403, "The form is out of date: reload its page and send it again.")
_TOO_LARGE = Rejection(413, f"The form is larger than {MAX_BODY:,} bytes.")


def has_form_token(headers: Headers, body: bytes, access: Access) -> bool:
    """Whether a POST carries the form token, in a field or in a header."""
    given = values_of(headers, FORM_HEADER)
    fields = parse_form(body).get(FORM_FIELD, "")
    token = given[0] if len(given) == 1 else fields.encode()
    return hmac.compare_digest(token, access.form_token.encode())


def parse_form(body: bytes) -> dict[str, str]:
    """Return the fields of a form; of fields with the same name the last one counts."""
    text = body.decode("utf-8", "replace")
    return dict(parse_qsl(text, keep_blank_values=True))


class AccessControl:
    """An ASGI application that passes accepted requests on to another.

    `show` makes the page for a rejected request: its content type and its body."""

    def __init__(
        self,
        application: Application,
        access: Access,
        show: Callable[[Scope, Rejection], tuple[str, bytes]],
    ) -> None:
        self._application = application
        self._access = access
        self._show = show

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = scope["state"]["connection"]
        is_static = scope["path"].startswith(STATIC)
        started = False

        async def answer(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                may_keep = is_static and message["status"] == 200
                message["headers"] = with_security_headers(
                    message.get("headers", ()), _STATIC_HEADERS if may_keep else HEADERS
                )
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                connection.wait()

        checked = check_request(scope, self._access)
        if isinstance(checked, Entry):
            return await self._enter(checked, answer)
        if isinstance(checked, Rejection):
            return await self._reject(scope, checked, answer)
        body = await read_body(receive, MAX_BODY)
        if body is None:
            return None  # the client is gone
        if len(body) > MAX_BODY:
            return await self._reject(scope, _TOO_LARGE, answer)
        if scope["method"] == "POST":
            if not has_form_token(scope["headers"], body, self._access):
                return await self._reject(scope, _NO_FORM_TOKEN, answer)
            scope["state"]["form"] = parse_form(body)
        connection.serve()
        try:
            await self._application(scope, replay(body, receive), answer)
        except asyncio.CancelledError:
            return None  # the server ends; uvicorn would print a traceback for every open page
        except Exception as error:  # boundary of a request: the log gets no text of the memory
            logging.getLogger("clawmark.web").error(
                "A request failed with %s.", type(error).__name__
            )
            if not started:
                failed = Rejection(500, f"The page cannot be shown ({type(error).__name__}).")
                await self._reject(scope, failed, answer)
        return None

    async def _enter(self, entry: Entry, send: Send) -> None:
        cookie = (
            f"{self._access.cookie_name}={self._access.cookie}; "
            "Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000"
        )
        headers = [
            (b"location", entry.location.encode()),
            (b"set-cookie", cookie.encode()),
            (b"content-length", b"0"),
        ]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async def _reject(self, scope: Scope, rejection: Rejection, send: Send) -> None:
        kind, body = self._show(scope, rejection)
        headers = [
            (b"content-type", kind.encode()),
            (b"content-length", str(len(body)).encode()),
        ]
        await send({"type": "http.response.start", "status": rejection.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _without_token(scope: Scope) -> str:
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    query = urlencode([(name, value) for name, value in pairs if name != TOKEN])
    # One slash at the start: `//host` would lead to another host.
    path = "/" + quote(scope["path"].lstrip("/\\"))
    return f"{path}?{query}" if query else path


def _has_cookie(headers: Headers, access: Access) -> bool:
    """Whether the cookie is there; compared in constant time.

    The cookies of other servers on this host come along, and may be broken."""
    expected = access.cookie.encode()
    start = f"{access.cookie_name}=".encode()
    pairs = (pair.strip() for line in values_of(headers, b"cookie") for pair in line.split(b";"))
    given = [pair.removeprefix(start) for pair in pairs if pair.startswith(start)]
    return any(hmac.compare_digest(value, expected) for value in given)
