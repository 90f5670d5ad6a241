"""The one HTTP client of all remote providers: a request in, a whole answer out, or the reason why
there is none.

One client talks to one configured host. Connections are kept and handed from call to call, so
threads may share a client; a deadline covers name lookup, connection, TLS, request and answer
together. Redirects are answers like others: nothing is ever followed, so a key goes nowhere but to
the host it was configured for. No header, body or key is logged or raised. Resolving and connecting
is `dial`'s part, reading `answer`'s, trying again `retry`'s."""

from __future__ import annotations

import os
import re
import select
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from clawmark.net.connection import (
    Endpoint,
    Resolve,
    dial,
    new_context,
    parse_proxy,
    parse_url,
    system_resolve,
)
from clawmark.net.response import MOST_BODY, Response, read_answer, read_body, read_head
from clawmark.net.stream import Deadline, HttpTrouble, Stream, Unanswered
from clawmark.system.cancellation import check_cancelled, current_cancellation

if TYPE_CHECKING:
    import ssl

__all__ = ["HttpClient", "HttpTrouble", "Incoming", "Response"]

IDLE_SECONDS = 30.0
"""Servers and routers forget silent connections, the strict ones after a minute, and some without a
word.
"""
MOST_IDLE = 8

_OURS = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "expect",
        "te",
        "trailer",
    }
)
"""Headers that frame a message; a configured one would only break it."""
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\xa0-\xff]*")
_TARGET = re.compile(r"/[\x21-\x7e]*")


class _Kept(NamedTuple):
    stream: Stream
    since: float
    process: int


class Incoming:
    """An answer whose body is read while it arrives; close it."""

    def __init__(self, stream: Stream, head: Response, pieces: Iterator[bytes]) -> None:
        self.head = head
        """With a status other than 2xx it has its body."""
        self.pieces = pieces
        """The body; raises HttpTrouble on the way when it is too long, too late or cut."""
        self._stream = stream

    def close(self) -> None:
        self._stream.close()


class HttpClient:
    """Sends requests below one base URL; safe to use from several threads."""

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str] | None = None,
        *,
        secrets: Sequence[str] = (),
        proxy: str = "",
        resolve: Resolve | None = None,
    ) -> None:
        self._url = base_url
        self._headers = dict(headers or {})
        self._secrets = tuple(secret for secret in secrets if secret)
        self._proxy = proxy
        self._resolve = resolve or system_resolve
        self._lock = threading.Lock()
        self._idle: list[_Kept] = []
        self._busy: set[Stream] = set()
        self._is_closed = self._is_aborted = False
        self._context: ssl.SSLContext | None = None

    def __repr__(self) -> str:
        return f"<HttpClient {self._url.partition('?')[0]}>"

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        seconds: float,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Send one request and read the whole answer within `seconds`, whatever the server does;
        raises HttpTrouble.
        """
        check_cancelled()
        deadline = Deadline(seconds)
        request = self._request(parse_url(self._url), method, path, body, headers or {})
        kept = self._take()
        if kept is not None:
            kept.begin(deadline)
            try:
                return self._exchange(kept, request, method)
            except Unanswered:
                # It was closed while it lay idle: that says nothing about the service, so a new one
                # is tried at once.
                pass
        return self._exchange(self._dial(deadline), request, method)

    def receive(
        self, path: str, *, seconds: float, most: int, headers: Mapping[str, str] | None = None
    ) -> Incoming:
        """Ask for a body that may be longer than an answer should be and read it piece by piece,
        `most` bytes in all.

        The same deadline is for all of it, what the reader does in between included.
        """
        deadline = Deadline(seconds)
        request = self._request(parse_url(self._url), "GET", path, None, headers or {})
        stream = self._dial(deadline)
        try:
            try:
                stream.send(request)
            except OSError as error:
                raise stream.trouble(error) from None
            head = read_head(stream)
            is_fine = 200 <= head.status < 300
            pieces = (
                iter(())
                if head.status in (204, 304)
                else read_body(stream, head, most if is_fine else MOST_BODY)
            )
            body = b"" if is_fine else b"".join(pieces)
        except BaseException:
            stream.close()
            raise
        return Incoming(stream, Response(head.status, head.headers, body), pieces)

    def at(self, base_url: str) -> HttpClient:
        """A client for another address on the same host, with the same headers; close it too."""
        if parse_url(base_url)[:3] != parse_url(self._url)[:3]:
            raise HttpTrouble("the key belongs to another host", permanent=True)
        return HttpClient(
            base_url, self._headers, secrets=self._secrets, proxy=self._proxy, resolve=self._resolve
        )

    def close(self) -> None:
        """Close what lies idle; a call that is under way ends first, and a later one closes its own
        connection.
        """
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for kept in idle:
            kept.stream.close()

    def abort(self) -> None:
        """Cut short every call that is under way, and refuse later ones."""
        with self._lock:
            self._is_aborted = True
            busy = tuple(self._busy)
        for stream in busy:
            stream.abort()
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_idle"):
            self.close()

    def _dial(self, deadline: Deadline) -> Stream:
        proxy = parse_proxy(self._proxy)
        return dial(
            parse_url(self._url), deadline, resolve=self._resolve, context=self._tls, proxy=proxy
        )

    def _exchange(self, stream: Stream, request: bytes, method: str) -> Response:
        cancellation = current_cancellation()
        if cancellation is not None:
            cancellation.on_cancel(stream.abort)
        with self._lock:
            self._busy.add(stream)
        try:
            check_cancelled()
            if self._is_aborted:
                raise HttpTrouble("it was closed", permanent=True)
            try:
                stream.send(request)
            except TimeoutError as error:
                raise stream.trouble(error) from None
            except OSError:
                # A server that will not read a large body answers and closes: the answer says more
                # than the broken pipe.
                response, _ = read_answer(stream)
                stays_open = False
            else:
                response, stays_open = read_answer(stream, has_body=method != "HEAD")
        except BaseException:
            stream.close()
            check_cancelled()  # a cancelled call says nothing about the service
            raise
        finally:
            if cancellation is not None:
                cancellation.on_cancel(None)
            with self._lock:
                self._busy.discard(stream)
        if stays_open:
            self._keep(stream)
        else:
            stream.close()
        return response

    def _request(
        self,
        endpoint: Endpoint,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> bytes:
        """The whole request as bytes; what HTTP cannot carry is refused without being repeated."""
        target = endpoint.path + path
        if endpoint.query:
            target += ("&" if "?" in target else "?") + endpoint.query
        target = target or "/"
        if not _NAME.fullmatch(method) or not _TARGET.fullmatch(target):
            raise HttpTrouble("the request has an impossible address", permanent=True)
        if any(secret in target for secret in self._secrets):
            raise HttpTrouble(
                "the key would be part of the address, where logs would show it", permanent=True
            )
        fields = {
            "user-agent": "clawmark",
            "accept": "application/json",
            "accept-encoding": "gzip",
            **({} if body is None else {"content-type": "application/json"}),
        }
        for name, value in (*self._headers.items(), *headers.items()):
            if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
                raise HttpTrouble(
                    "a header holds characters that HTTP does not allow",
                    permanent=True,
                    hint="Check the key and memorySearch.remote.headers for "
                    "line breaks and letters outside Latin-1.",
                )
            fields[name.lower()] = value.strip()
        if self._proxy and not endpoint.is_secure:
            target = f"http://{endpoint.authority}{target}"
            proxy = parse_proxy(self._proxy)
            if proxy and proxy.authorization:
                fields["proxy-authorization"] = proxy.authorization
        lines = [f"{method} {target} HTTP/1.1", f"host: {endpoint.authority}"]
        lines += [f"{name}: {value}" for name, value in fields.items() if name not in _OURS]
        if body is not None or method in ("POST", "PUT", "PATCH"):
            lines.append(f"content-length: {len(body or b'')}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")

    def _tls(self) -> ssl.SSLContext:
        with self._lock:
            self._context = self._context or new_context()
            return self._context

    def _take(self) -> Stream | None:
        """A kept connection that still looks alive; the others are closed."""
        while True:
            with self._lock:
                kept = self._idle.pop() if self._idle else None
            if kept is None:
                return None
            # After a fork the connection belongs to two processes, and their requests would mix.
            is_fresh = kept.process == os.getpid() and time.monotonic() - kept.since < IDLE_SECONDS
            if is_fresh and not _has_news(kept.stream.sock):
                return kept.stream
            kept.stream.close()

    def _keep(self, stream: Stream) -> None:
        with self._lock:
            if not self._is_closed and len(self._idle) < MOST_IDLE:
                self._idle.append(_Kept(stream, time.monotonic(), os.getpid()))
                return
        stream.close()


def _has_news(sock: socket.socket) -> bool:
    """Whether an idle connection has something to read: its end, or bytes nobody asked for."""
    if sys.platform != "win32" and hasattr(select, "poll"):
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([sock], [], [], 0)[0])
