"""A plain HTTP/1.1 server on loopback, in threads, that can also stop listening, or listen and
never accept.

Requests come in complete (also chunked ones); what is answered, and whether it is HTTP at all, is
left to `handle`, which is given the request and a `Link` to the client. Returning True from it
keeps the connection."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple

MOST_BODY = 256 << 20
MOST_HEADERS = 64 << 10


class Gone(Exception):
    """The client closed the connection, or the server was told to drop it."""


class Request(NamedTuple):
    """One request; header names are lower-case, the target is as it was sent."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]


class Link:
    """The connection to one client."""

    def __init__(self, sock: socket.socket, release: socket.socket) -> None:
        self.sock = sock
        self._release = release

    def send(self, data: bytes) -> None:
        try:
            self.sock.sendall(data)
        except OSError as error:
            raise Gone from error

    def answer(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """A whole HTTP answer."""
        self.send(
            head(
                status,
                {
                    "Content-Type": "application/json",
                    **(headers or {}),
                    "Content-Length": str(len(body)),
                },
            )
            + body
        )

    def wait(self, seconds: float | None) -> None:
        """Do nothing for a while, or until the server is healed; raises Gone as soon as the client
        is.
        """
        watched = [self.sock, self._release]
        while True:
            readable = select.select(watched, [], [], seconds)[0]
            if self.sock not in readable:
                return
            if self.is_gone():
                raise Gone
            watched.remove(
                self.sock
            )  # it sent more than it should: that is no reason to turn round and round

    def is_gone(self) -> bool:
        try:
            return not self.sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def reset(self) -> None:
        """Cut the connection with RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Gone


def head(status: int, headers: Mapping[str, str]) -> bytes:
    """A status line and headers, whatever they hold."""
    lines = [f"HTTP/1.1 {status} Status", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class Loopback:
    """Listens on 127.0.0.1 and hands every request to `handle`, each connection in a thread of its
    own.
    """

    def __init__(self, handle: Callable[[Request, Link], bool], port: int = 0) -> None:
        self._handle = handle
        self._lock = threading.Lock()
        self._links: set[Link] = set()
        self._threads: set[threading.Thread] = set()
        self._fillers: list[socket.socket] = []
        self._releases: list[socket.socket] = []
        self._listener: socket.socket | None = None
        self._acceptor: threading.Thread | None = None
        self.port = port
        self._held, self._hold = self._new_release()
        self.listen()

    def listen(self) -> None:
        """Accept connections on the same port as ever."""
        self.silence()
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(128)
        self.port = listener.getsockname()[1]
        self._listener = listener
        self._acceptor = threading.Thread(target=self._accept, args=(listener,), daemon=True)
        self._acceptor.start()

    def silence(self) -> None:
        """Stop listening and drop every connection: the next one is refused."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in accept
            if self._acceptor is not None:
                self._acceptor.join()
            listener.close()
        self._acceptor = None
        for filler in self._fillers:
            filler.close()
        self._fillers.clear()
        self.drop()

    def never_accept(self) -> None:
        """Listen with a full queue that nobody empties: a connection attempt gets no answer."""
        self.silence()
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", self.port))
        self._listener.listen(0)
        for _ in range(16):
            filler = socket.socket()
            filler.settimeout(0.1)
            self._fillers.append(filler)
            try:
                filler.connect(("127.0.0.1", self.port))
            except OSError:
                return

    def drop(self) -> None:
        """Close every connection there is and wait until its thread has ended."""
        self.release()
        with self._lock:
            links, threads = list(self._links), list(self._threads)
        for link in links:
            with contextlib.suppress(OSError):
                link.sock.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()

    @property
    def connections(self) -> int:
        """How many connections are open; one that was never accepted does not count."""
        with self._lock:
            return len(self._threads)

    def release(self) -> None:
        """End every `Link.wait` of now; later ones wait again."""
        hold = self._hold
        self._held, self._hold = self._new_release()
        hold.close()

    def close(self) -> None:
        """Drop everything and stop."""
        self.silence()
        self._hold.close()
        for held in self._releases:
            held.close()

    def _new_release(self) -> tuple[socket.socket, socket.socket]:
        held, hold = socket.socketpair()
        self._releases.append(held)
        return held, hold

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = Link(sock, self._held)
            thread = threading.Thread(target=self._serve, args=(link,), daemon=True)
            with self._lock:
                self._links.add(link)
                self._threads.add(thread)
            thread.start()

    def _serve(self, link: Link) -> None:
        try:
            with link.sock.makefile("rb") as stream:
                while True:
                    request = _read(stream.readline, stream.read, link)
                    link._release = self._held
                    if request is None or not self._handle(request, link):
                        return
        except (Gone, OSError, ValueError):
            return
        finally:
            link.sock.close()
            with self._lock:
                self._links.discard(link)
                self._threads.discard(threading.current_thread())


def _read(
    readline: Callable[[int], bytes], read: Callable[[int], bytes], link: Link
) -> Request | None:
    first = readline(MOST_HEADERS)
    if not first.strip():
        return None
    method, target, _ = first.decode("latin-1").split(" ", 2)
    headers: dict[str, str] = {}
    while (line := readline(MOST_HEADERS)) not in (b"\r\n", b"\n", b""):
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    if headers.get("expect", "").lower() == "100-continue":
        link.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return Request(
            method=method, target=target, headers=headers, body=_read_chunks(readline, read)
        )
    size = int(headers.get("content-length") or 0)
    if not 0 <= size <= MOST_BODY:
        raise ValueError("the body is too large")
    body = read(size)
    if len(body) < size:
        raise Gone
    return Request(method=method, target=target, headers=headers, body=body)


def _read_chunks(readline: Callable[[int], bytes], read: Callable[[int], bytes]) -> bytes:
    parts = []
    while size := int(readline(MOST_HEADERS).split(b";")[0], 16):
        parts.append(read(size))
        readline(MOST_HEADERS)
    while readline(MOST_HEADERS) not in (b"\r\n", b"\n", b""):
        pass  # trailers say nothing here
    return b"".join(parts)
