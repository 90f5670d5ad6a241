"""A real `clawmark serve` over a real database, and a plain HTTP client for it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from postgres import in_database

from clawmark.store.postgres.servers import Server
from clawmark.store.postgres.team.access_tokens import create_token, revoke_token
from clawmark.store.postgres.team.admin import create_space, grant

HANG_SECONDS = 60
"""Nothing takes this long; a server that does is hanging."""
LOGIN = "clawmark_web"
"""The login of the server; it owns nothing."""
ALL = ("read", "append", "publish")


def wait_until(holds: Callable[[], object], errors: Callable[[], str] = lambda: "") -> None:
    """Ask until something holds; fail after a time in which nothing else could have happened."""
    ends = time.monotonic() + HANG_SECONDS
    while not holds():
        assert time.monotonic() < ends, f"still waiting: {errors()}"
        time.sleep(0.02)


class Reply(NamedTuple):
    """An answer; status 0 if the connection was closed without one."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, str]:
        found: dict[str, str] = self.json()["error"]
        assert set(found) == {"type", "message", "hint"}, found
        return found


class TeamServer:
    """A running `clawmark serve`."""

    def __init__(self, folder: Path, uri: str, settings: Mapping[str, Any], *words: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "clawmark.json"
        known = {
            "memorySearch": {"provider": "none", "store": {"uri": uri}},
            "serve": {"port": 0, "rateLimits": {"perToken": 0, "perAddress": 0}},
        }
        config.write_text(json.dumps(_merged(known, settings)), encoding="utf-8")
        self.folder = folder
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("CLAWMARK_", "OPENCLAW_"))
        }
        env |= {"HOME": str(folder), "PYTHONWARNINGS": "error"}
        command = [sys.executable, "-m", "clawmark", "serve", "--config", str(config)]
        command += ["--state-dir", str(folder / "state"), "-w", str(folder / "workspace"), *words]
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=env
        )
        self._lines = list[str]()
        self._is_ready = threading.Event()
        self.port = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_ready(self) -> TeamServer:
        assert self._is_ready.wait(HANG_SECONDS), self.errors()
        assert self.port, self.errors()
        return self

    def errors(self) -> str:
        return "".join(self._lines)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        code = self.process.wait(HANG_SECONDS)
        self._reader.join(HANG_SECONDS)
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.wait()
        if self.process.stderr is not None:
            self.process.stderr.close()

    def request(
        self,
        method: str,
        path: str,
        token: str = "",
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request on a connection of its own; `bytes` are sent as they are."""
        sent = dict(headers or {})
        if token:
            sent.setdefault("Authorization", f"Bearer {token}")
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        connection = HTTPConnection("127.0.0.1", self.port, timeout=HANG_SECONDS)
        try:
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            return Reply(
                answer.status,
                {name.lower(): value for name, value in answer.getheaders()},
                answer.read(),
            )
        except (OSError, HTTPException):
            return Reply(0, {}, b"")
        finally:
            connection.close()

    def send(self, data: bytes, *, half_close: bool = False) -> bytes:
        """Send bytes and return everything that is answered until the connection closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=HANG_SECONDS) as connection:
            connection.sendall(data)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
            parts = list[bytes]()
            with suppress(ConnectionResetError):
                while part := connection.recv(65536):
                    parts.append(part)
            return b"".join(parts)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for raw in self.process.stderr:
            line = raw.decode("utf-8", "replace")
            self._lines.append(line)
            if found := re.search(r"serving the team's memory at http://[^ ]*:([0-9]+)", line):
                self.port = int(found[1])
                self._is_ready.set()
        self._is_ready.set()


class Team(NamedTuple):
    """A database with spaces and members, as its owner sees it."""

    owner_uri: str
    uri: str
    """The address for the server."""

    def token(
        self,
        name: str,
        permissions: Sequence[str] = ALL,
        spaces: Sequence[str] | None = None,
    ) -> str:
        return self.numbered_token(name, permissions, spaces)[0]

    def numbered_token(
        self,
        name: str,
        permissions: Sequence[str] = ALL,
        spaces: Sequence[str] | None = None,
    ) -> tuple[str, int]:
        """Make a token; return its text and its number."""
        with Server(self.owner_uri).direct() as connection:
            text, made = create_token(
                connection, name, login=LOGIN, permissions=permissions, spaces=spaces
            )
        return text, made.id

    def revoke(self, number: int) -> None:
        with Server(self.owner_uri).direct() as connection:
            revoke_token(connection, number)

    def grant(self, space: str, name: str, *, may_write: bool) -> None:
        with Server(self.owner_uri).direct() as connection:
            grant(connection, space, name, login=LOGIN, may_write=may_write)


def make_team(owner_uri: str) -> Team:
    """Make the spaces `team` (ada and bob write, eve reads) and `secret` (eve writes)."""
    with psycopg.connect(owner_uri, autocommit=True) as connection:
        connection.execute(
            f"DO $$ BEGIN CREATE ROLE {LOGIN} LOGIN; "
            "EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        )
        connection.execute(f"GRANT clawmark_service TO {LOGIN}")
    team = Team(owner_uri, in_database(owner_uri, user=LOGIN))
    with Server(owner_uri).direct() as connection:
        create_space(connection, "team")
        create_space(connection, "secret")
    for name in ("ada", "bob"):
        team.grant("team", name, may_write=True)
    team.grant("team", "eve", may_write=False)
    team.grant("secret", "eve", may_write=True)
    return team


@contextmanager
def team_server(
    folder: Path, uri: str, settings: Mapping[str, Any] | None = None, *words: str
) -> Iterator[TeamServer]:
    """A server that is gone afterwards."""
    server = TeamServer(folder, uri, settings or {}, *words)
    try:
        yield server.wait_ready()
    finally:
        server.close()


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(one)
    for name, value in other.items():
        known = made.get(name)
        is_inner = isinstance(known, Mapping) and isinstance(value, Mapping)
        made[name] = _merged(known, value) if is_inner else value  # type: ignore[arg-type]
    return made
