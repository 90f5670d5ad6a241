"""The HTTP client of all remote providers: send a request and return the whole response.

A client talks to one configured host and may be shared by threads. One deadline covers name
lookup, connection, TLS, request and response. Redirects are returned and never followed, so a key
is sent only to the host it was configured for. Headers, bodies and keys are neither logged nor
raised. Connections are the part of `transport`, retries of `retry`."""

from __future__ import annotations

import os
import re
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from clawmark.net.addresses import Resolve, parse_proxy, parse_url, system_resolve
from clawmark.net.http_error import Deadline, HttpError, Unanswered
from clawmark.system.cancellation import check_cancelled, current_cancellation

if TYPE_CHECKING:
    import ssl

    from clawmark.net.transport import Channel

__all__ = ["HttpClient", "HttpError", "IncomingResponse", "Response"]

IDLE_SECONDS = 30.0
"""Servers and routers drop silent connections, the strict ones after a minute."""
MAX_IDLE = 8
MAX_BODY_BYTES = 32 << 20

_FRAMING_HEADERS = frozenset(
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
"""Headers that frame a message; a configured one would break it."""
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\xa0-\xff]*")
_TARGET = re.compile(r"/[\x21-\x7e]*")
_INFLATED_BYTES = 1 << 20
"""How much of a decompressed body is in memory at once beyond the limit."""


class Response(NamedTuple):
    """A response; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Request(NamedTuple):
    method: str
    target: str
    headers: Sequence[tuple[str, str]]
    body: bytes | None


class IncomingResponse:
    """A response whose body is read while it arrives; close it."""

    def __init__(self, channel: Channel, head: Response, pieces: Iterator[bytes]) -> None:
        self.head = head
        """It includes the body when the status is not 2xx."""
        self.pieces = pieces
        """The body; raises HttpError when it is too large, late or incomplete."""
        self._channel = channel

    def close(self) -> None:
        self._channel.close()


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
        self._idle: list[Channel] = []
        self._busy: set[Channel] = set()
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
        """Send one request and read the whole response within `seconds`; raise HttpError."""
        check_cancelled()
        deadline = Deadline(seconds)
        request = self._prepare(method, path, body, headers or {})
        idle = self._take()
        if idle is not None:
            try:
                return self._exchange(idle, request, deadline)
            except Unanswered:
                # The server closed it while it was idle, which says nothing about the service.
                if idle.is_fresh:
                    raise
        return self._exchange(self._open(), request, deadline)

    def receive(
        self, path: str, *, seconds: float, most: int, headers: Mapping[str, str] | None = None
    ) -> IncomingResponse:
        """Request a long body and return it piece by piece, at most `most` bytes of it.

        The deadline includes the time that the caller takes between the pieces.
        """
        request = self._prepare("GET", path, None, headers or {})
        channel = self._open()
        try:
            status, found = channel.request(**request._asdict(), deadline=Deadline(seconds))
            is_success = 200 <= status < 300
            pieces = _read_body(channel.body(), found, most if is_success else MAX_BODY_BYTES)
            body = b"" if is_success else b"".join(pieces)
        except BaseException:  # also on KeyboardInterrupt
            channel.close()
            raise
        return IncomingResponse(channel, Response(status, found, body), pieces)

    def at(self, base_url: str) -> HttpClient:
        """Return a client for another path on the same host with the same headers; close it too."""
        if parse_url(base_url)[:3] != parse_url(self._url)[:3]:
            raise HttpError("the key belongs to another host", permanent=True)
        return HttpClient(
            base_url, self._headers, secrets=self._secrets, proxy=self._proxy, resolve=self._resolve
        )

    def close(self) -> None:
        """Close the idle connections; later requests open connections that are not kept."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for channel in idle:
            channel.close()

    def abort(self) -> None:
        """Make all current and later requests fail."""
        with self._lock:
            self._is_aborted = True
            busy = tuple(self._busy)
        for channel in busy:
            channel.abort()
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_idle"):
            self.close()

    def _exchange(self, channel: Channel, request: _Request, deadline: Deadline) -> Response:
        cancellation = current_cancellation()
        if cancellation is not None:
            cancellation.on_cancel(channel.abort)
        with self._lock:
            self._busy.add(channel)
        try:
            check_cancelled()
            if self._is_aborted:
                raise HttpError("the client was closed", permanent=True)
            status, headers = channel.request(**request._asdict(), deadline=deadline)
            body = b"".join(_read_body(channel.body(), headers, MAX_BODY_BYTES))
            if body and "content-length" in headers and channel.has_unread_bytes():
                raise HttpError("the response is longer than it says")
            is_reusable = channel.finish()
        except BaseException:  # also on KeyboardInterrupt
            channel.close()
            check_cancelled()  # a cancelled request is not a failure of the service
            raise
        finally:
            if cancellation is not None:
                cancellation.on_cancel(None)
            with self._lock:
                self._busy.discard(channel)
        self._keep(channel, is_reusable)
        return Response(status, headers, body)

    def _prepare(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> _Request:
        """Return the request; raise HttpError, without repeating it, for what HTTP cannot carry."""
        endpoint = parse_url(self._url)
        target = endpoint.path + path
        if endpoint.query:
            target += ("&" if "?" in target else "?") + endpoint.query
        target = target or "/"
        if not _NAME.fullmatch(method) or not _TARGET.fullmatch(target):
            raise HttpError("the request has an impossible address", permanent=True)
        if any(secret in target for secret in self._secrets):
            raise HttpError(
                "the key would be part of the address, where logs would show it", permanent=True
            )
        fields = {"user-agent": "clawmark", "accept": "application/json", "accept-encoding": "gzip"}
        if body is not None:
            fields["content-type"] = "application/json"
        for name, value in (*self._headers.items(), *headers.items()):
            if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
                raise HttpError(
                    "a header holds characters that HTTP does not allow",
                    permanent=True,
                    hint="Check the key and memorySearch.remote.headers for "
                    "line breaks and letters outside Latin-1.",
                )
            fields[name.lower()] = value.strip()
        allowed = [field for field in fields.items() if field[0] not in _FRAMING_HEADERS]
        if body is not None or method in ("POST", "PUT", "PATCH"):
            allowed.append(("content-length", str(len(body or b""))))
        return _Request(
            method=method,
            target=target,
            headers=[("host", endpoint.authority), *allowed],
            body=body,
        )

    def _open(self) -> Channel:
        # Imported late: httpcore takes longer to import than a cold search without a provider.
        from clawmark.net.transport import Channel, new_tls_context

        def tls_context() -> ssl.SSLContext:
            with self._lock:
                self._context = self._context or new_tls_context()
                return self._context

        return Channel(
            parse_url(self._url),
            parse_proxy(self._proxy),
            resolve=self._resolve,
            idle_seconds=IDLE_SECONDS,
            tls_context=tls_context,
        )

    def _take(self) -> Channel | None:
        while True:
            with self._lock:
                channel = self._idle.pop() if self._idle else None
            # After a fork the connection belongs to two processes, and their requests would mix.
            if channel is None or channel.process == os.getpid():
                return channel
            channel.close()

    def _keep(self, channel: Channel, is_reusable: bool) -> None:
        with self._lock:
            if is_reusable and not self._is_closed and len(self._idle) < MAX_IDLE:
                self._idle.append(channel)
                return
        channel.close()


def _read_body(pieces: Iterator[bytes], headers: Mapping[str, str], limit: int) -> Iterator[bytes]:
    """Yield the decompressed body; raise HttpError when it is larger than `limit`."""
    length = headers.get("content-length", "").partition(",")[0].strip()
    if length.isdigit() and int(length) > limit:
        raise _too_large(limit)
    encoding = headers.get("content-encoding", "").strip().lower()
    if encoding in ("gzip", "x-gzip", "deflate"):
        # The compressed bytes count as well: empty gzip members inflate to nothing.
        pieces = _inflated(_limited(pieces, limit), is_gzip="gzip" in encoding)
    elif encoding not in ("", "identity"):
        raise HttpError("the response is compressed in a way that was not requested")
    return _limited(pieces, limit)


def _limited(pieces: Iterable[bytes], limit: int) -> Iterator[bytes]:
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > limit:
            raise _too_large(limit)
        yield piece


def _too_large(limit: int) -> HttpError:
    return HttpError(f"the response is larger than {limit >> 20} MB")


def _inflated(pieces: Iterable[bytes], *, is_gzip: bool) -> Iterator[bytes]:
    decoder: zlib._Decompress | None = None
    try:
        for piece in pieces:
            data, is_more = piece, False
            while data or is_more:
                decoder = decoder or zlib.decompressobj(_window_bits(data, is_gzip))
                inflated = decoder.decompress(data, _INFLATED_BYTES)
                yield inflated
                # The decoder may hold back some bytes although it has taken all of the data.
                is_more = len(inflated) == _INFLATED_BYTES and not decoder.eof
                data = decoder.unconsumed_tail
                if decoder.eof:
                    data, decoder = decoder.unused_data, None
    except zlib.error:
        raise HttpError("the response is malformed: it cannot be decompressed") from None
    if decoder is not None:
        raise HttpError("the response was cut short")


def _window_bits(data: bytes, is_gzip: bool) -> int:
    """Return zlib's number for gzip, or for one of the two formats that servers call deflate."""
    if is_gzip:
        return 31
    return 15 if data[0] & 0x0F == 8 else -15
