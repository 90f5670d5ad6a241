"""A loopback server that sends exactly the bytes a test wants, one thread per connection."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple


class Request(NamedTuple):
    """One request as it arrived; header names are in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Peer:
    """The server's end of one connection."""

    def __init__(self, sock: socket.socket, stopped: threading.Event) -> None:
        self.sock = sock
        self.stopped = stopped
        self._file = sock.makefile("rb")

    def request(self) -> Request | None:
        """Read one whole request; None when the client has closed."""
        first = self._file.readline().decode("latin-1").split()
        if not first:
            return None
        headers = {}
        while line := self._file.readline().decode("latin-1").strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return Request(
            method=first[0],
            target=first[1],
            headers=headers,
            body=self._file.read(int(headers.get("content-length", "0"))),
        )

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def until_closed(self) -> None:
        """Send nothing until the client closes."""
        while self._file.read(4096):
            pass

    def for_ever(self, data: bytes, pause: float = 0.0) -> None:
        """Send the same bytes repeatedly until the client closes."""
        while not self.stopped.wait(pause) if pause else not self.stopped.is_set():
            self.send(data)

    def reset(self) -> None:
        """Make closing reset the connection."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def close(self) -> None:
        self._file.close()
        self.sock.close()


class RawServer:
    """The address of the server and the requests it got."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.connections = 0
        self.requests: list[Request] = []
        self.hosts: list[str] = []
        """The hosts that clients named."""


@contextlib.contextmanager
def serving(
    script: Callable[[Peer, RawServer], None], context: ssl.SSLContext | None = None
) -> Iterator[RawServer]:
    """Run `script` for every connection until the block ends; connection errors are ignored."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = RawServer(listener.getsockname()[1])
    stopped = threading.Event()
    peers: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def talk(sock: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):
            if context is not None:
                sock = context.wrap_socket(sock, server_side=True)
                peers.append(sock)  # the plain one is empty now
            peer = Peer(sock, stopped)
            try:
                script(peer, server)
            finally:
                peer.close()
        sock.close()

    def accept() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            server.connections += 1
            peers.append(sock)
            threads.append(threading.Thread(target=talk, args=(sock,)))
            threads[-1].start()

    acceptor = threading.Thread(target=accept)
    acceptor.start()
    try:
        yield server
    finally:
        stopped.set()
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        acceptor.join()
        listener.close()
        for sock in peers:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()


def answering(data: bytes, *, close: bool = False) -> Callable[[Peer, RawServer], None]:
    """Return a script that answers every request with the same bytes."""

    def script(peer: Peer, server: RawServer) -> None:
        while request := peer.request():
            server.requests.append(request)
            peer.send(data)
            if close:
                return

    return script


def ok(body: bytes = b"{}", *headers: str) -> bytes:
    """Return a well-formed response."""
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def forward(one: socket.socket, other: socket.socket) -> None:
    """Copy bytes in both directions until one side closes."""
    while True:
        for ready in select.select([one, other], [], [])[0]:
            data = ready.recv(65536)
            if not data:
                return
            (other if ready is one else one).sendall(data)


def new_certificate(folder: Path, name: str) -> Path:
    """Make a self-signed certificate for `name` and 127.0.0.1; its key is in `key.pem`."""
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    subprocess.run(
        [
            *command.split(),
            *("-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name},IP:127.0.0.1"),
            *("-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")),
        ],
        check=True,
        capture_output=True,
    )
    return folder / "cert.pem"
