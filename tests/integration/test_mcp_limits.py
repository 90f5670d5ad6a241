"""The limits of the HTTP server, tried with short ones: who says nothing, too slowly, or reads
nothing, loses its place.
"""

from __future__ import annotations

import asyncio
import json
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("mcp")

from mcp_servers import INITIALIZE, Reply, read_reply

from clawmark import Memory
from clawmark.aio import AsyncMemory
from clawmark.mcp.http.server import Address, check_address, rules_for, serve_http
from clawmark.mcp.server import build_server
from clawmark.model.errors import ConfigError
from clawmark.net.server.connection_limits import Limits
from clawmark.net.server.requests import check_host_and_origin
from clawmark.testing import HashingEmbedder

TOKEN = b"a-token-for-the-tests-of-the-limits-of-it"
HANG_SECONDS = 30
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


class Running(NamedTuple):
    """A server in this process, on its own loop in a thread."""

    port: int

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=HANG_SECONDS)

    def head(self, length: int, *more: str, method: str = "POST") -> bytes:
        lines = (
            f"{method} /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            f"Authorization: Bearer {TOKEN.decode()}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"Content-Length: {length}",
            *more,
        )
        return "\r\n".join([*lines, "", ""]).encode()

    def good(self) -> Reply:
        """What a good client is answered on a connection of its own."""
        return self.post(json.dumps(INITIALIZE).encode())

    def post(self, body: bytes, *headers: str, method: str = "POST") -> Reply:
        with self.connect() as connection:
            connection.sendall(
                self.head(len(body), "Connection: close", *headers, method=method) + body
            )
            return read_reply(connection)

    def ping(self, session: str = "") -> int:
        """The status of a ping, in a session if there is one."""
        return self.post(PING, *((f"Mcp-Session-Id: {session}",) if session else ())).status


@contextmanager
def running(folder: Path, limits: Limits) -> Iterator[Running]:
    folder.joinpath("workspace").mkdir()
    folder.joinpath("workspace", "MEMORY.md").write_text("We chose PostgreSQL.\n", encoding="utf-8")
    memory = Memory.open(
        folder / "workspace", state_dir=folder / "state", embedder=HashingEmbedder()
    )
    loop, ports, is_ready = asyncio.new_event_loop(), list[int](), threading.Event()

    def ready(address: Address) -> None:
        ports.append(address.port)
        is_ready.set()

    async def serve() -> None:
        async with AsyncMemory(lambda: memory) as served:
            await serve_http(build_server(served, "main"), Address(port=0), TOKEN, ready, limits)

    task = loop.create_task(serve())
    thread = threading.Thread(target=_run, args=(loop, task))
    thread.start()
    assert is_ready.wait(HANG_SECONDS)
    try:
        yield Running(ports[0])
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(HANG_SECONDS)
        loop.close()


def _run(loop: asyncio.AbstractEventLoop, task: asyncio.Task[None]) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(task)
    except asyncio.CancelledError:
        loop.run_until_complete(loop.shutdown_default_executor())


def is_closed(connection: socket.socket) -> bool:
    """Wait until the other side closes the connection without an answer."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_a_silent_client_is_disconnected(tmp_path: Path) -> None:
    """h-idle"""
    with running(tmp_path, Limits(seconds=0.3)) as server, server.connect() as connection:
        assert is_closed(connection)
        assert server.good().status == 200


def test_a_client_that_never_finishes_its_body_is_disconnected(tmp_path: Path) -> None:
    """h-body-slow"""
    with running(tmp_path, Limits(seconds=0.3)) as server, server.connect() as connection:
        connection.sendall(server.head(1000) + b"{")
        assert is_closed(connection)
        assert server.good().status == 200


def test_a_client_that_never_finishes_its_headers_is_disconnected(tmp_path: Path) -> None:
    with running(tmp_path, Limits(seconds=0.3)) as server, server.connect() as connection:
        connection.sendall(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
        assert is_closed(connection)


def test_a_client_that_does_not_read_its_answers_is_disconnected(tmp_path: Path) -> None:
    with running(tmp_path, Limits(seconds=0.5)) as server, socket.socket() as connection:
        tmp_path.joinpath("workspace", "MEMORY.md").write_text("tea\n" * 200_000, encoding="utf-8")
        begun = server.good()
        body = b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"memory://MEMORY.md"}}'
        request = (
            server.head(len(body), f"Mcp-Session-Id: {begun.headers['mcp-session-id']}") + body
        )
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(
            request * 20
        )  # 16 MB of answers, more than any system keeps for a connection
        gone = select.poll()
        gone.register(connection, 0)
        assert gone.poll(HANG_SECONDS * 1000)
        assert server.good().status == 200


def test_a_client_that_keeps_sending_while_it_is_answered_is_disconnected(tmp_path: Path) -> None:
    with running(tmp_path, Limits(seconds=20)) as server, server.connect() as connection:
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        request = (
            server.head(len(body), f"Mcp-Session-Id: {server.good().headers['mcp-session-id']}")
            + body
        )
        with pytest.raises(ConnectionError):
            for _ in range(100_000):
                connection.sendall(request)
        assert server.good().status == 200


def test_idle_connections_do_not_keep_a_good_client_out(tmp_path: Path) -> None:
    with running(tmp_path, Limits(connections=8, seconds=20)) as server:
        silent, slow = [server.connect() for _ in range(15)], [server.connect() for _ in range(15)]
        for connection in slow:
            connection.sendall(server.head(1000) + b"{")
        assert [server.good().status for _ in range(5)] == [200] * 5
        assert all(is_closed(connection) for connection in slow[:7])  # the oldest made room
        for connection in (*silent, *slow):
            connection.close()
        assert server.good().status == 200  # by now the server has seen them go


def test_a_full_server_answers_503_and_keeps_the_requests_in_progress(
    tmp_path: Path,
) -> None:
    with running(tmp_path, Limits(connections=2, seconds=20)) as server:
        begun = server.good()
        lines = (
            "GET /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{server.port}",
            f"Authorization: Bearer {TOKEN.decode()}",
            "Accept: text/event-stream",
        )
        streams = list[socket.socket]()
        for reply in (begun, server.good()):
            stream = server.connect()
            session = f"Mcp-Session-Id: {reply.headers['mcp-session-id']}"
            stream.sendall("\r\n".join([*lines, session, "", ""]).encode())
            assert b"200 OK" in stream.recv(65536)
            streams.append(stream)
        assert server.good().status == 503
        streams.pop().close()
        assert any(server.good().status == 200 for _ in range(100))
        streams.pop().close()


def test_a_new_session_replaces_the_one_idle_the_longest(tmp_path: Path) -> None:
    with running(tmp_path, Limits(sessions=3, seconds=20)) as server:
        first, second, third = (server.good().headers["mcp-session-id"] for _ in range(3))
        assert server.ping(first) == 200  # so that `second` is idle the longest
        fourth = server.good()
        assert fourth.status == 200
        assert [server.ping(session) for session in (first, second, third)] == [200, 404, 200]
        assert server.ping(fourth.headers["mcp-session-id"]) == 200


def test_abandoned_sessions_do_not_keep_a_new_client_out(
    tmp_path: Path,
) -> None:
    with running(tmp_path, Limits(seconds=20)) as server:
        replies = [server.good() for _ in range(Limits().sessions + Limits().connections + 20)]
        assert {reply.status for reply in replies} == {200}
        assert server.ping(replies[-1].headers["mcp-session-id"]) == 200


def test_a_session_with_an_open_stream_is_not_replaced(tmp_path: Path) -> None:
    with running(tmp_path, Limits(sessions=2, seconds=20)) as server, server.connect() as stream:
        followed = server.good().headers["mcp-session-id"]
        lines = (
            "GET /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{server.port}",
            f"Authorization: Bearer {TOKEN.decode()}",
            "Accept: text/event-stream",
            f"Mcp-Session-Id: {followed}",
        )
        stream.sendall("\r\n".join([*lines, "", ""]).encode())
        assert b"200 OK" in stream.recv(65536)
        assert [server.good().status for _ in range(5)] == [200] * 5
        assert server.ping(followed) == 200


def test_a_request_that_opens_no_session_replaces_none(tmp_path: Path) -> None:
    with running(tmp_path, Limits(sessions=2, seconds=20)) as server:
        sessions = [server.good().headers["mcp-session-id"] for _ in range(2)]
        assert server.ping() == 400
        assert server.post(PING, "Mcp-Protocol-Version: 2026-07-28").status == 400
        assert [server.ping(session) for session in sessions] == [200, 200]


def test_a_deleted_session_makes_room(tmp_path: Path) -> None:
    with running(tmp_path, Limits(sessions=2, seconds=20)) as server:
        kept, deleted = (server.good().headers["mcp-session-id"] for _ in range(2))
        assert server.post(b"", f"Mcp-Session-Id: {deleted}", method="DELETE").status == 200
        assert server.good().status == 200
        assert server.ping(kept) == 200


@pytest.mark.parametrize(
    ("address", "token", "allow", "says"),
    [
        (Address("0.0.0.0"), b"x" * 43, False, "--allow-remote"),
        (Address("192.0.2.1"), b"x" * 43, False, "--allow-remote"),
        (Address("::"), b"x" * 43, False, "--allow-remote"),
        (Address("0.0.0.0"), b"x" * 31, True, "strong"),
        (Address("example.org"), b"x" * 43, True, "127.0.0.1"),
    ],
)
def test_a_remote_address_needs_allow_remote_and_a_strong_token(
    address: Address, token: bytes, allow: bool, says: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        check_address(address, token, allow_remote=allow)
    assert says in caught.value.hint


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1"])
def test_a_loopback_address_needs_neither_flag_nor_strong_token(host: str) -> None:
    check_address(Address(host), b"short", allow_remote=False)


def test_a_server_accepts_its_address_loopback_names_and_configured_names() -> None:
    rules = rules_for(Address("192.0.2.1", 8000, ("Box.Lan",)), TOKEN)
    assert rules.hosts == {
        b"127.0.0.1:8000",
        b"localhost:8000",
        b"[::1]:8000",
        b"192.0.2.1:8000",
        b"box.lan:8000",
    }
    for host in rules.hosts:
        headers = [(b"host", host), (b"origin", b"http://" + host)]
        assert check_host_and_origin(headers, rules.hosts) is None
