"""The memory of a team in PostgreSQL, as the server uses it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from clawmark.backends.team.access import READ, Access
from clawmark.backends.team.direct import DirectSpaces
from clawmark.backends.team.sessions import Reading, SpaceSessions
from clawmark.embed.base import Choice
from clawmark.model.errors import IndexStoreError, SpacesUnavailable
from clawmark.serve.due_vectors import DueVectors
from clawmark.serve.grants import Grant, PoolUse
from clawmark.store.postgres.migrate import check_version
from clawmark.store.postgres.servers import Server
from clawmark.store.postgres.team.access_tokens import use_token
from clawmark.store.postgres.team.listing import Listing, LogEntry, listing, newest_entries

KEPT = 1_000
"""Callers whose spaces are kept open."""


class DatabaseTeam:
    """Implements `Team`; all callers share the connections of one server."""

    def __init__(self, server: Server, choice: Choice, due: DueVectors | None = None) -> None:
        self._server = server
        self._choice = choice
        self._due = due
        self._lock = threading.Lock()
        self._open: OrderedDict[tuple[str, Access], DirectSpaces] = OrderedDict()

    def grant(self, token: str) -> Grant | None:
        with self._translated(), self._server.connection() as connection:
            connection.autocommit = True
            found = use_token(connection, token)
        if found is None:
            return None
        return Grant(found.id, found.name, Access(found.permissions, found.spaces))

    def spaces(self, grant: Grant) -> DirectSpaces:
        key = (grant.caller, grant.access)
        with self._lock:
            found = self._open.pop(key, None) or self.make_spaces(*key)
            self._open[key] = found
            while len(self._open) > KEPT:
                self._open.popitem(last=False)
        return found

    def make_spaces(self, caller: str, access: Access) -> DirectSpaces:
        return DirectSpaces(self._server, caller, self._choice, access=access, owns_server=False)

    def listing(self, grant: Grant, space: str, most: int) -> Listing:
        with self._reading(grant) as reading:
            member = reading.member(space)
            return listing(reading.connection, member.scope, space, most)

    def recent(self, grant: Grant, spaces: Sequence[str], most: int) -> tuple[LogEntry, ...]:
        with self._reading(grant) as reading:
            wanted = {member.scope: member.space for member in reading.only(spaces)}
            return newest_entries(reading.connection, wanted, most)

    def note_due(self, grant: Grant) -> None:
        if self._due is not None:
            self._due.add(grant.caller)

    def check(self) -> None:
        with self._translated(), self._server.direct() as connection:
            check_version(self._server, connection)

    def pool(self) -> PoolUse:
        stats = self._server.pool_stats()
        return PoolUse(
            size=stats.get("pool_size", 0),
            idle=stats.get("pool_available", 0),
            waiting=stats.get("requests_waiting", 0),
        )

    def close(self) -> None:
        self._server.close()

    @contextmanager
    def _reading(self, grant: Grant) -> Iterator[Reading]:
        grant.access.check(READ, "")
        with SpaceSessions(self._server, grant.caller, grant.access).reading() as reading:
            yield reading

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except IndexStoreError as error:
            raise SpacesUnavailable(error.message, hint=error.hint) from None
