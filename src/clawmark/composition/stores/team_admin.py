"""Opens the database of the shared spaces as its owner: `clawmark space`, `clawmark token`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from clawmark.composition.stores.postgres import open_server
from clawmark.config.schema import Settings
from clawmark.store.postgres.migrate import check_version
from clawmark.store.postgres.servers import Connection, Server
from clawmark.store.postgres.team import access_tokens, admin
from clawmark.store.postgres.team.access_tokens import TokenInfo
from clawmark.store.postgres.team.admin import Granted, SpaceSummary


class TeamAdmin:
    """What the owner of the database may do with spaces and tokens."""

    def __init__(self, server: Server, connection: Connection) -> None:
        self._server = server
        self._connection = connection

    def create_space(self, name: str) -> None:
        admin.create_space(self._connection, name)

    def list_spaces(self) -> list[SpaceSummary]:
        return admin.list_spaces(self._connection)

    def grant(self, space: str, name: str, *, login: str, author: str, may_write: bool) -> Granted:
        return admin.grant(
            self._connection, space, name, login=login, author=author, may_write=may_write
        )

    def revoke(self, space: str, name: str, *, login: str, withdraw: bool) -> int:
        """Remove a member; with `withdraw` also its files, and return how many."""
        author = admin.revoke(self._connection, space, name, login=login)
        return admin.withdraw_all(self._server, self._connection, space, author) if withdraw else 0

    def delete_space(self, name: str) -> None:
        admin.delete_space(self._connection, name)

    def find_space(self, name: str) -> SpaceSummary:
        """Return one space; SpaceInputError if it does not exist."""
        admin.scope_of(self._connection, name)
        return next(space for space in self.list_spaces() if space.name == name)

    def create_token(
        self,
        name: str,
        *,
        login: str,
        label: str,
        permissions: Sequence[str],
        spaces: Sequence[str] | None,
        days: int | None,
    ) -> tuple[str, TokenInfo]:
        return access_tokens.create_token(
            self._connection,
            name,
            login=login,
            label=label,
            permissions=permissions,
            spaces=spaces,
            days=days,
        )

    def list_tokens(self) -> list[TokenInfo]:
        return access_tokens.list_tokens(self._connection)

    def revoke_token(self, number: int) -> TokenInfo:
        return access_tokens.revoke_token(self._connection, number)


@contextmanager
def open_team_admin(settings: Settings) -> Iterator[TeamAdmin]:
    """Connect to the database as the owner of its tables."""
    with (
        closing(open_server(settings.memory_search.store)) as server,
        server.direct() as connection,
    ):
        check_version(server, connection)
        admin.check_owner(connection)
        yield TeamAdmin(server, connection)
