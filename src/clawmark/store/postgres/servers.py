"""Connections to one PostgreSQL server: a small pool, and errors that say what to do.

The address may hold a password, so it never appears in a message; `shown` is the address without
it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import conninfo, errors
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from clawmark.model.errors import ConfigError, IndexBusy, IndexStoreError

POOL_SIZE = 8
POOL_SECONDS = 10.0
"""How long to wait for a free connection."""
QUERY_SECONDS = 30.0
"""How long one statement may take."""
CONNECT_SECONDS = 10
SETTING = "memorySearch.store.uri"
_LOST = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
)
_TOO_SLOW = (errors.QueryCanceled,)
_BUSY = (errors.LockNotAvailable, errors.DeadlockDetected, errors.TooManyConnections)
_NOT_SET_UP = (errors.UndefinedTable, errors.InvalidSchemaName, errors.UndefinedFunction)
_DENIED = (errors.InsufficientPrivilege, errors.InvalidAuthorizationSpecification)

Connection = psycopg.Connection[Any]


def address_of(uri: str, setting: str = SETTING) -> dict[str, Any]:
    """Parse an address; raise ConfigError for one that is not PostgreSQL's."""
    if not uri.startswith(("postgresql://", "postgres://")):
        raise ConfigError(
            f"{setting} must begin with postgresql://.",
            key=setting,
            hint="Write it as postgresql://USER:PASSWORD@HOST:5432/DATABASE.",
        )
    try:
        return dict(conninfo.conninfo_to_dict(uri))
    except psycopg.ProgrammingError:
        # The driver's message repeats parts of the address.
        raise ConfigError(
            f"{setting} is not a valid address of PostgreSQL.",
            key=setting,
            hint="Write it as postgresql://USER:PASSWORD@HOST:5432/DATABASE; "
            "encode special characters of the password, such as @, as %40.",
        ) from None


def shown_address(address: dict[str, Any]) -> str:
    """Return an address without user, password and options."""
    host = address.get("host") or address.get("hostaddr") or "localhost"
    port = f":{address['port']}" if address.get("port") else ""
    return f"postgresql://{host}{port}/{address.get('dbname') or address.get('user') or ''}"


class Server:
    """One database that is connected to when it is first needed."""

    def __init__(
        self,
        uri: str,
        *,
        pool_size: int = POOL_SIZE,
        pool_seconds: float = POOL_SECONDS,
        query_seconds: float = QUERY_SECONDS,
        setting: str = SETTING,
    ) -> None:
        """`setting` is where the address comes from, for messages."""
        self._address = address_of(uri, setting)
        self._setting = setting
        self.shown = shown_address(self._address)
        self._size = pool_size
        self._pool_seconds = pool_seconds
        self._query_seconds = query_seconds
        self._lock = threading.Lock()
        self._pool: ConnectionPool[Connection] | None = None
        self._pid = 0

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Borrow a connection; errors of the driver become errors of the index."""
        with self.translated():
            pool = self._opened()
            with pool.connection(timeout=self._pool_seconds) as connection:
                yield connection

    @contextmanager
    def direct(self) -> Iterator[Connection]:
        """Open a connection of its own, in autocommit mode, without a limit for statements."""
        with (
            self.translated(),
            psycopg.connect(
                **self._parameters() | {"options": self._address.get("options") or ""},
                autocommit=True,
            ) as connection,
        ):
            yield connection

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raise the errors of the driver as errors of the index."""
        try:
            yield
        except (psycopg.Error, PoolTimeout, PoolClosed) as error:
            raise self._explained(error) from None

    def pool_stats(self) -> dict[str, int]:
        """Return the figures of the pool; empty before the first connection."""
        with self._lock:
            pool = self._pool if self._pid == os.getpid() else None
        return {} if pool is None else dict(pool.get_stats())

    def close(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None and self._pid == os.getpid():
            pool.close()

    def _opened(self) -> ConnectionPool[Connection]:
        with self._lock:
            if self._pool is None or self._pid != os.getpid():
                self._pid = os.getpid()
                self._pool = ConnectionPool(
                    kwargs=self._parameters(),
                    connection_class=psycopg.Connection,
                    min_size=0,
                    max_size=self._size,
                    timeout=self._pool_seconds,
                    check=ConnectionPool.check_connection,
                    reconnect_timeout=self._pool_seconds,
                    open=False,
                )
                self._connect_once()
                self._pool.open()
            return self._pool

    def _connect_once(self) -> None:
        """Connect without the pool, which would wait and hide why a connection fails."""
        psycopg.connect(**self._parameters()).close()

    def _parameters(self) -> dict[str, Any]:
        limit = f"-c statement_timeout={int(self._query_seconds * 1000)}"
        return {
            "application_name": "clawmark",
            "connect_timeout": CONNECT_SECONDS,
            "keepalives_idle": 30,
            **self._address,
            "options": f"{self._address.get('options') or ''} {limit}".strip(),
        }

    def _explained(self, error: Exception) -> IndexStoreError:
        """Return the error of the index for an error of the driver."""
        if isinstance(error, PoolTimeout):
            return IndexBusy(
                f"All {self._size} connections to {self.shown} are in use, or none can be made.",
                hint="Try again; if it stays, check that the database runs and accepts more "
                "connections (max_connections).",
            )
        if isinstance(error, _BUSY):
            return IndexBusy(
                f"The index in {self.shown} is being written by another process.",
                hint="Try again in a moment.",
            )
        if isinstance(error, _TOO_SLOW):
            return IndexStoreError(
                f"A query in {self.shown} was ended after {self._query_seconds:g} s.",
                hint="Run `clawmark db upgrade`, which makes missing indexes and statistics; then "
                "see what else the server is doing.",
            )
        if isinstance(error, _NOT_SET_UP):
            return IndexStoreError(
                f"{self.shown} has no tables of this version of Clawmark.",
                hint="Run `clawmark db init` once, or `clawmark db upgrade` after an update.",
            )
        if isinstance(error, _DENIED):
            return IndexStoreError(
                f"The login has no access to the index in {self.shown}.",
                hint="Ask the owner of the database to run: GRANT clawmark_service TO your_login.",
            )
        reason = self._reason(error)
        if isinstance(error, _LOST):
            return IndexStoreError(
                f"{self.shown} cannot be reached{reason}.",
                hint=f"Check that the server runs and that {self._setting} is right; "
                "`clawmark db status` tries it.",
            )
        return IndexStoreError(
            f"{self.shown} refused a statement{reason}.", hint="Run `clawmark db status`."
        )

    def _reason(self, error: Exception) -> str:
        """Return the last line of the driver's message in brackets, without the password."""
        diagnostics = getattr(error, "diag", None)
        text = getattr(diagnostics, "message_primary", None) or str(error)
        line = (text.strip().splitlines() or [""])[-1].strip().rstrip(".")
        for secret in (self._address.get("password"),):
            line = line.replace(str(secret), "…") if secret else line
        return f" ({line[:200]})" if line else ""
