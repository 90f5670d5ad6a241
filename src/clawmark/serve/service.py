"""What the routes of a server share: the memory, the check of tokens, and threads for both."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import anyio
import anyio.to_thread

from clawmark.backends.team.base import TeamSpaces
from clawmark.model.errors import ClawmarkError
from clawmark.model.values import Query
from clawmark.net.server.requests import Scope
from clawmark.serve.clients import Client
from clawmark.serve.grants import Grant, Team, is_token
from clawmark.serve.metrics import Metrics
from clawmark.serve.problems import (
    NO_TOKEN,
    NOT_DIRECT,
    UNAVAILABLE,
    WRONG_TOKEN,
    RequestFailed,
    problem_of,
    too_many,
)
from clawmark.serve.rate_limits import RateLimit
from clawmark.serve.rest.bodies import SearchRequest

T = TypeVar("T")
WRONG_TOKEN_COST = 10
"""A refused token counts as so many requests of its address: tokens cannot be guessed quickly."""
READY_SECONDS = 3.0
_CHECKED_FOR_SECONDS = 1.0


class ServiceOptions(NamedTuple):
    """How requests are answered."""

    make_query: Callable[[SearchRequest], Query]
    threads: int
    per_token: int
    public_url: str = ""
    hosts: frozenset[bytes] = frozenset()
    """The Host headers that name the server, for its pages."""


class Service:
    """The memory that is served; it keeps nothing about a client but the number of requests."""

    def __init__(self, team: Team, metrics: Metrics, options: ServiceOptions) -> None:
        self.team = team
        self.metrics = metrics
        self.options = options
        self._tokens = RateLimit(options.per_token)
        self._threads: anyio.CapacityLimiter | None = None
        self._is_ready = (0.0, False)

    async def run(self, work: Callable[[], T]) -> T:
        """Run what waits for the database in a thread; its errors become answers."""
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(self.options.threads)
        try:
            return await anyio.to_thread.run_sync(work, limiter=self._threads)
        except ClawmarkError as error:
            problem = problem_of(error)
            if problem is UNAVAILABLE:
                self.metrics.add("clawmark_database_errors_total")
                logging.getLogger("clawmark.serve").warning("%s %s", error.message, error.hint)
            raise RequestFailed(problem) from None

    def admit(self, scope: Scope, token: str | None) -> Grant:
        """Return what the token of a request permits; raise RequestFailed without a valid one.

        The database is asked every time, so that a revoked token stops working at once."""
        if token is None:
            raise RequestFailed(NO_TOKEN)
        client: Client = scope["state"]["client"]
        if self.options.public_url and not client.is_trusted:
            raise RequestFailed(NOT_DIRECT)
        grant = self.team.grant(token) if is_token(token) else None
        if grant is None:
            raise RequestFailed(scope["state"]["charge"](scope, WRONG_TOKEN_COST) or WRONG_TOKEN)
        scope["state"]["token"] = grant.token
        wait = self._tokens.take(grant.token)
        if wait:
            self.metrics.add("clawmark_rate_limited_total", value="token")
            raise RequestFailed(too_many(wait, "token"))
        return grant

    def spaces(self, grant: Grant) -> TeamSpaces:
        """Return what the holder of a token may use."""
        return self.team.spaces(grant)

    async def is_ready(self) -> bool:
        """Whether the database answers; an answer counts for a second."""
        at, was_ready = self._is_ready
        if time.monotonic() - at < _CHECKED_FOR_SECONDS:
            return was_ready
        is_ready = False
        with anyio.move_on_after(READY_SECONDS):
            # A thread of its own: the others may all wait for the database.
            is_ready = await anyio.to_thread.run_sync(
                self._answers, limiter=anyio.CapacityLimiter(1), abandon_on_cancel=True
            )
        self._is_ready = (time.monotonic(), is_ready)
        return is_ready

    def _answers(self) -> bool:
        try:
            self.team.check()
        except ClawmarkError as error:
            logging.getLogger("clawmark.serve").warning("%s %s", error.message, error.hint)
            return False
        return True

    def update_gauges(self) -> None:
        """Record what is measured when the metrics are asked for."""
        pool = self.team.pool()
        self.metrics.set("clawmark_pool_connections", pool.size)
        self.metrics.set("clawmark_pool_connections_idle", pool.idle)
        self.metrics.set("clawmark_pool_requests_waiting", pool.waiting)
