"""What every request passes before it is routed: limits of size, time and number, and the log.

The answer to a request that does not pass has the same form as every other error. A request that
is being answered when the server stops is finished; later ones get 503."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, MutableMapping
from typing import Any, NamedTuple

from clawmark.net.server.requests import (
    Application,
    Receive,
    Scope,
    Send,
    read_body,
    replay,
    security_headers,
    values_of,
    with_security_headers,
)
from clawmark.serve.clients import Proxies, client_of, limited_as
from clawmark.serve.metrics import OTHER, Metrics
from clawmark.serve.problems import (
    OVERLOADED,
    STOPPING,
    UNEXPECTED,
    Problem,
    RequestFailed,
    too_large,
    too_many,
    too_slow,
)
from clawmark.serve.rate_limits import RateLimit

MAX_HEAD = 32 << 10
MOST_IN_FLIGHT = 256
"""Requests that are answered or wait for a connection to the database at the same time."""
HEALTH = "/health/"
STATIC = "/static/"
HEADERS = security_headers(form_action="'self'", referrer="same-origin")
STATIC_HEADERS = tuple(
    (name, b"private, max-age=31536000, immutable" if name == b"cache-control" else value)
    for name, value in HEADERS
)
_HEAD_TOO_LARGE = Problem(
    status=431,
    type="HeadersTooLarge",
    message=f"The address and the headers are larger than {MAX_HEAD:,} bytes.",
    hint="Send shorter headers.",
)
_SLOW_SECONDS_LEFT = 5
"""A body is refused this long before its connection is closed."""


class GateOptions(NamedTuple):
    """The limits of a server."""

    max_body: int
    body_seconds: float
    per_address: int
    proxies: Proxies
    log: Callable[[str], None] | None = None
    """Writes a line for each request; None for no log."""


class Gate:
    """An ASGI application that passes accepted requests on to another."""

    def __init__(self, application: Application, metrics: Metrics, options: GateOptions) -> None:
        self._application = application
        self._metrics = metrics
        self._options = options
        self._addresses = RateLimit(options.per_address)
        self._is_stopping = False
        self._in_flight = 0
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    @property
    def is_stopping(self) -> bool:
        return self._is_stopping

    @property
    def in_flight(self) -> int:
        return self._in_flight

    async def drain(self, seconds: float) -> bool:
        """Refuse new requests and wait for the running ones; False if some did not finish."""
        self._is_stopping = True
        try:
            await asyncio.wait_for(self._is_idle.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        state: dict[str, Any] = scope["state"]
        state["client"] = client_of(scope, self._options.proxies)
        state["charge"] = self._charge
        status = 0

        async def answer(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            is_last = message["type"] == "http.response.body" and not message.get("more_body")
            if message["type"] == "http.response.start":
                status = message["status"]
                is_kept = scope["path"].startswith(STATIC) and status == 200
                headers = with_security_headers(
                    message.get("headers", ()), STATIC_HEADERS if is_kept else HEADERS
                )
                if self._is_stopping:
                    headers.append((b"connection", b"close"))
                message["headers"] = headers
            await send(message)
            if is_last:
                state["connection"].wait()

        try:
            await self._serve(scope, receive, answer)
        except asyncio.CancelledError:
            return  # the server ends; uvicorn would print a traceback
        except Exception as error:  # boundary of a request: the client gets a problem
            await self._explain(error, status, answer)
        self._record(scope, status, time.perf_counter() - began)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = self._refusal(scope)
        if problem is not None:
            return await reply(problem, send)
        try:
            body = await asyncio.wait_for(
                read_body(receive, self._options.max_body), self._options.body_seconds
            )
        except TimeoutError:
            return await reply(too_slow(self._options.body_seconds), send, is_last=True)
        if body is None:
            return None  # the client is gone
        if len(body) > self._options.max_body:
            return await reply(too_large(self._options.max_body), send, is_last=True)
        scope["state"]["body"] = body
        scope["state"]["connection"].serve()
        self._in_flight += 1
        self._is_idle.clear()
        try:
            return await self._application(scope, replay(body, receive), send)
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._is_idle.set()

    def _refusal(self, scope: Scope) -> Problem | None:
        """Return why a request is not read at all."""
        path: str = scope["path"]
        size = len(path) + len(scope["query_string"])
        if sum(len(name) + len(value) + 4 for name, value in scope["headers"]) + size > MAX_HEAD:
            return _HEAD_TOO_LARGE
        if path.startswith(HEALTH):
            return None
        if self._is_stopping:
            return STOPPING
        if self._in_flight >= MOST_IN_FLIGHT:
            self._metrics.add("clawmark_rate_limited_total", value="load")
            return OVERLOADED
        sizes = [
            int(one) for one in values_of(scope["headers"], b"content-length") if one.isdigit()
        ]
        if any(size > self._options.max_body for size in sizes):
            return too_large(self._options.max_body)
        return self._charge(scope, 1.0)

    def _charge(self, scope: Scope, cost: float) -> Problem | None:
        """Count requests of an address; return a problem if there were too many."""
        if scope["path"].startswith(STATIC):
            return None
        wait = self._addresses.take(limited_as(scope["state"]["client"].address), cost)
        if not wait:
            return None
        self._metrics.add("clawmark_rate_limited_total", value="address")
        return too_many(wait, "address")

    async def _explain(self, error: Exception, status: int, send: Send) -> None:
        if isinstance(error, RequestFailed):
            problem = error.problem
        else:
            self._metrics.add("clawmark_errors_total")
            # The type and the place only: the message may quote text of the memory.
            logging.getLogger("clawmark.serve").error("A request failed: %s", _place(error))
            problem = UNEXPECTED
        if not status:
            await reply(problem, send)

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        state = scope["state"]
        route = state.get("route", OTHER)
        if not status:
            return  # the client left before the answer
        self._metrics.observe(route, status, seconds)
        self._metrics.set("clawmark_requests_in_flight", self._in_flight)
        if self._options.log is not None and not scope["path"].startswith((HEALTH, STATIC)):
            token = state.get("token", "-")
            self._options.log(
                f"{state['client'].address} {scope['method']} {route} {status} "
                f"{seconds * 1000:.0f}ms token={token}"
            )


async def reply(problem: Problem, send: Send, *, is_last: bool = False) -> None:
    """Answer with a problem; `is_last` closes the connection, whose next bytes are unknown."""
    headers = problem.headers
    if is_last:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": problem.body})


def _place(error: BaseException) -> str:
    """Return the type of an error and the function in which it was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return type(error).__name__
    code = trace.tb_frame.f_code
    return f"{type(error).__name__} in {code.co_qualname} ({code.co_filename}:{trace.tb_lineno})"
