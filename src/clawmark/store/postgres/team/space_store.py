"""The index of a shared space, as `IndexStore` for a member of it."""

from __future__ import annotations

from clawmark.model.errors import IndexStoreError
from clawmark.store.postgres.rows import IndexRow
from clawmark.store.postgres.servers import Connection, Server
from clawmark.store.postgres.sessions import lock_index
from clawmark.store.postgres.store import PostgresStore


class SpaceStore(PostgresStore):
    """The index of a space, opened for one caller."""

    def __init__(
        self, server: Server, space: str, *, caller: int, scope: int, cache_entries: int = 50_000
    ) -> None:
        super().__init__(server, space, cache_entries=cache_entries)
        self._space = (caller, scope)

    def _declare(self, connection: Connection) -> tuple[int, int]:
        return self._space

    def _lock(self, connection: Connection, scope: int, timeout: float) -> IndexRow:
        row = lock_index(connection, scope, timeout, shown=self.path, on_wait=self._note_wait)
        if row is None:
            raise IndexStoreError(
                f"The space {self.owner} in {self.path} was deleted or may not be written any "
                "more.",
                hint="`clawmark space list` shows the spaces.",
            )
        return row

    def close(self) -> None:
        """Do nothing: the connections belong to the spaces."""


class OwnedSpaceStore(SpaceStore):
    """The index of a space, opened by the owner of the tables, for whom policies do not apply."""

    def __init__(self, server: Server, space: str, scope: int) -> None:
        super().__init__(server, space, caller=0, scope=scope)

    def _begin(self, connection: Connection, mode: str) -> int:
        connection.autocommit = True
        connection.execute(f"BEGIN ISOLATION LEVEL {mode}")
        return self._space[1]
