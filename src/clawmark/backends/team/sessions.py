"""Transactions in the database of the spaces, for one caller.

Reading sees one moment. Writing locks the index of one space, so that the writers of a space take
turns and those of different spaces do not wait for each other."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from psycopg import errors

from clawmark.backends.team.access import READ, Access, read_only, unknown_space
from clawmark.model.errors import IndexStoreError, SpacesUnavailable
from clawmark.store.postgres import sessions
from clawmark.store.postgres.migrate import check_version
from clawmark.store.postgres.servers import Connection, Server
from clawmark.store.postgres.snapshot import PostgresSnapshot
from clawmark.store.postgres.team.members import Member, memberships
from clawmark.store.postgres.team.space_store import SpaceStore
from clawmark.store.postgres.transaction import PostgresTransaction
from clawmark.text.space_paths import is_name

LOCK_SECONDS = 10.0
"""How long a write waits for the other writers of its space."""


class Reading(NamedTuple):
    """A transaction that reads."""

    connection: Connection
    members: dict[str, Member]
    """The memberships of the caller, by space."""

    def member(self, space: str) -> Member:
        """Return the membership of a space; SpaceDenied if the caller may not see it."""
        if space not in self.members:
            raise unknown_space(space)
        return self.members[space]

    def only(self, names: Sequence[str]) -> list[Member]:
        """Return the memberships of some spaces, or of all."""
        return [self.member(name) for name in dict.fromkeys(names or self.members)]


class Writing(NamedTuple):
    """A transaction that holds the lock of a space."""

    connection: Connection
    caller: int
    member: Member
    transaction: PostgresTransaction


class SpaceSessions:
    """Opens transactions for one caller."""

    def __init__(self, server: Server, name: str, access: Access) -> None:
        self._server = server
        self._name = name if is_name(name) else ""  # no member has another name
        self._access = access
        self._is_checked = False
        self._checking = threading.Lock()

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        """Open a transaction that sees one moment and changes nothing."""
        with self._connection() as connection:
            sessions.begin_named(connection, sessions.READ, self._name)
            try:
                yield Reading(connection, self._members(connection))
            finally:
                sessions.end(connection)

    @contextmanager
    def writing(self, space: str, permission: str) -> Iterator[Writing]:
        """Open a transaction that may change a space: committed at the end of the block, rolled
        back if it raises."""
        with self._connection() as connection:
            caller = sessions.begin_named(connection, sessions.WRITE, self._name)
            try:
                member = self.may_write(Reading(connection, self._members(connection)), space)
                self._access.check(permission, space)
                row = sessions.lock_index(
                    connection, member.scope, LOCK_SECONDS, shown=self._server.shown
                )
                if row is None:  # The permission was taken away, or the space deleted.
                    raise unknown_space(space)
                transaction = PostgresTransaction(
                    connection, self._server, member.scope, row, time.time_ns
                )
                yield Writing(
                    connection=connection, caller=caller, member=member, transaction=transaction
                )
                transaction.finish()
                connection.commit()
            except errors.InsufficientPrivilege:
                raise read_only(space) from None
            finally:
                sessions.end(connection)

    def may_write(self, reading: Reading, space: str) -> Member:
        """Return the membership of a space; SpaceDenied if the caller may not write into it."""
        member = reading.member(space)
        if not member.may_write:
            raise read_only(space)
        return member

    def snapshots(
        self, reading: Reading, members: Sequence[Member]
    ) -> list[tuple[Member, PostgresSnapshot]]:
        """Return the indexes of some spaces at the moment of a transaction."""
        rows = sessions.index_rows(reading.connection, [member.scope for member in members])
        return [
            (
                member,
                PostgresSnapshot(
                    reading.connection, self._server, member.scope, rows[member.scope]
                ),
            )
            for member in members
        ]

    @contextmanager
    def store(self, space: str) -> Iterator[SpaceStore]:
        """Give the index of a space that the caller may write into."""
        with self._connection() as connection:
            caller = sessions.begin_named(connection, sessions.READ, self._name)
            try:
                member = self.may_write(Reading(connection, self._members(connection)), space)
            finally:
                sessions.end(connection)
        with self._translated():
            yield SpaceStore(self._server, space, caller=caller, scope=member.scope)

    def check_reading(self, space: str = "") -> None:
        """Raise SpaceDenied if the caller's token may not read."""
        self._access.check(READ, space)

    def _members(self, connection: Connection) -> dict[str, Member]:
        return {
            space: member
            for space, member in memberships(connection).items()
            if self._access.includes(space)
        }

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        with self._translated(), self._server.connection() as connection:
            if not self._is_checked:
                with self._checking:
                    connection.autocommit = True
                    check_version(self._server, connection)
                    self._is_checked = True
            yield connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise the errors of the index as errors of the spaces."""
        try:
            yield
        except IndexStoreError as error:
            raise SpacesUnavailable(error.message, hint=error.hint) from None
