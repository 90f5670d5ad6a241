"""The sessions of the HTTP server: when there are too many, the one that has been idle the longest
is closed.

In: requests on their way to the SDK's session manager. Out: the same requests, and a DELETE for a
session that has to make room. Clients often go without closing their session, and the SDK would
keep it for half an hour and refuse new ones. The client of a closed session is answered with 404
and opens a new one, as the protocol has it."""

from __future__ import annotations

from collections.abc import MutableMapping
from http import HTTPStatus
from typing import Any

from clawmark.mcp.http.access_control import Application, Receive, Scope, Send

_SESSION_ID = b"mcp-session-id"


class Sessions:
    """An application that keeps at most `limit` idle sessions open in the one behind it."""

    def __init__(self, inside: Application, limit: int) -> None:
        self._inside = inside
        self._limit = limit
        self._requests: dict[bytes, int] = {}
        """The requests under way in each open session; the session that was used last is at the
        end.
        """

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
                    self._requests.pop(session, None)  # it is closed
            await send(message)

        try:
            await self._inside(scope, receive, observe)
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
            await self._inside(closing, _no_body, _ignore)


def _header(headers: list[tuple[bytes, bytes]]) -> bytes:
    return next((value for name, value in headers if name.lower() == _SESSION_ID), b"")


async def _no_body() -> MutableMapping[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _ignore(_: MutableMapping[str, Any]) -> None:
    """The response to our own DELETE is not read."""
