"""Close the session that has been idle the longest when there are too many.

Clients often leave without closing their session, and the SDK would keep it for half an hour and
refuse new ones. The client of a closed session is answered with 404 and opens a new one, as the
protocol requires."""

from __future__ import annotations

from collections.abc import MutableMapping
from http import HTTPStatus
from typing import Any

from clawmark.net.server.requests import Application, Receive, Scope, Send

_SESSION_ID = b"mcp-session-id"


class SessionLimit:
    """An ASGI application that keeps at most `limit` sessions open in the one it wraps."""

    def __init__(self, application: Application, limit: int) -> None:
        self._application = application
        self._limit = limit
        self._requests: dict[bytes, int] = {}
        """Requests being answered in each open session, least recently used first."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = _header(scope["headers"])
        is_known = session in self._requests
        if is_known:
            self._begin(session)

        async def observe(message: MutableMapping[str, Any]) -> None:
            nonlocal session, is_known
            if message["type"] == "http.response.start":
                status = message["status"]
                if (
                    not session
                    and status < HTTPStatus.BAD_REQUEST
                    and (opened := _header(message["headers"]))
                ):
                    session, is_known = opened, True
                    self._begin(session)
                    await self._make_room(scope)
                elif status == HTTPStatus.NOT_FOUND or (
                    scope["method"] == "DELETE" and status == HTTPStatus.OK
                ):
                    self._requests.pop(session, None)
            await send(message)

        try:
            await self._application(scope, receive, observe)
        finally:
            if session in self._requests and is_known:
                self._requests[session] -= 1

    def _begin(self, session: bytes) -> None:
        self._requests[session] = self._requests.pop(session, 0) + 1

    async def _make_room(self, scope: Scope) -> None:
        while len(self._requests) > self._limit:
            idle = next(
                (session for session, requests in self._requests.items() if not requests), None
            )
            if idle is None:
                return
            del self._requests[idle]
            closing = {**scope, "method": "DELETE", "headers": [(_SESSION_ID, idle)]}
            await self._application(closing, _no_body, _ignore)


def _header(headers: list[tuple[bytes, bytes]]) -> bytes:
    return next((value for name, value in headers if name.lower() == _SESSION_ID), b"")


async def _no_body() -> MutableMapping[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _ignore(_: MutableMapping[str, Any]) -> None:
    """The response to our own DELETE is not read."""
