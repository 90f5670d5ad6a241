"""One HTTP connection over httpcore, with our deadline, address checks and size limits.

httpcore speaks HTTP/1.1, HTTP/2 and the protocols of proxies. `Channel` is the network backend
below it: it resolves and checks addresses, gives every operation the time that is left, limits what
is read before the body begins, and can be aborted from another thread. A channel carries one
request at a time, also over HTTP/2: requests that share a connection would wait for each other
beyond their deadlines."""

from __future__ import annotations

import logging
import os
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

import httpcore

from clawmark.net.addresses import Endpoint, Proxy, Resolve, resolve_host
from clawmark.net.http_error import Deadline, HttpError, Unanswered, describe, has_peer_closed

CONNECT_SECONDS = 5.0
"""For one address; a host that is up accepts in a fraction of it."""
MAX_HEADER_BYTES = 64 << 10
"""Of everything before the body, interim responses included."""
WRITE_BYTES = 64 << 10

_CUT = "the response was cut short"
_MALFORMED = "the response is malformed"
_HEADERS_TOO_LARGE = f"the headers of the response are larger than {MAX_HEADER_BYTES >> 10} KB"
_PROTOCOL_ERRORS = (
    ("peer ", _CUT),
    ("Server disconnected", _CUT),
    ("Receive buffer too long", _HEADERS_TOO_LARGE),
    ("Received server _SWITCH_UPGRADE", "the server wants to speak another protocol"),
    ("illegal status line", "the response is not HTTP/1.1"),
    ("bad Content-Length", "the response is malformed: its length is not a number"),
    ("conflicting Content-Length", "the response is malformed: its length is not a number"),
    ("illegal header line", "the response is malformed: a header line cannot be read"),
    ("illegal chunk", "the response is malformed: a chunk has no size"),
    ("malformed chunk", "the response is malformed: a chunk is not as long as it says"),
    ("Only Transfer-Encoding", "the response is malformed: its transfer encoding is unknown"),
)
"""The start of h11's message -> our reason. Its message may quote the server."""


class _Password(bytes):
    """Hidden from httpcore's debug log, which shows the arguments of calls."""

    def __repr__(self) -> str:
        return "***"


def _silence_debug_log() -> None:
    """Turn off httpcore's debug log: it shows response headers, which may echo a key."""
    logger = logging.getLogger("httpcore")
    if logger.getEffectiveLevel() < logging.INFO:
        logger.setLevel(logging.INFO)


def new_tls_context() -> ssl.SSLContext:
    """Return a context that checks certificates and host names and ignores SSLKEYLOGFILE."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_default_certs()
    return context


class Channel(httpcore.NetworkBackend):
    """A connection to one endpoint, directly or through a proxy."""

    def __init__(
        self,
        endpoint: Endpoint,
        proxy: Proxy | None,
        *,
        resolve: Resolve,
        idle_seconds: float,
        tls_context: Callable[[], ssl.SSLContext],
    ) -> None:
        _silence_debug_log()
        self.process = os.getpid()
        self.is_aborted = False
        self.is_fresh = False
        """Whether the current request opened the connection."""
        self.deadline = Deadline(0.0)
        self._endpoint = endpoint
        self._proxy = proxy
        self._resolve = resolve
        self._is_at_proxy = self._is_http2 = False
        self._has_head = False
        self._received = 0
        self._start: bytes | None = None
        """The first bytes of an HTTP/1 response, until there are enough to recognise it."""
        self._stream: _Stream | None = None
        self._response: httpcore.Response | None = None
        options: dict[str, Any] = {
            "network_backend": self,
            "max_connections": 1,
            "keepalive_expiry": idle_seconds,
            "http2": find_spec("h2") is not None,
            "ssl_context": tls_context() if endpoint.scheme == "https" else None,
        }
        self._pool = _open_pool(proxy, options, tls_context)

    def request(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: bytes | None,
        deadline: Deadline,
    ) -> tuple[int, dict[str, str]]:
        """Send a request and return the status and the headers of the response."""
        self.deadline = deadline
        self._has_head = self._is_at_proxy = self.is_fresh = False
        self._received = 0
        host = self._endpoint.host
        if ":" in host and self._proxy and self._proxy.scheme != "socks5":
            host = f"[{host}]"  # it becomes part of the request to the proxy
        with self._translated_errors():
            self._response = self._pool.handle_request(
                httpcore.Request(
                    method,
                    httpcore.URL(
                        scheme=self._endpoint.scheme,
                        host=host,
                        port=None if self._endpoint.has_default_port else self._endpoint.port,
                        target=target,
                    ),
                    headers=[(name.encode(), value.encode("latin-1")) for name, value in headers],
                    content=body,
                    extensions={"trace": self._on_event},
                )
            )
        self._has_head = True
        if not 100 <= self._response.status <= 999:  # httpcore takes any number over HTTP/2
            raise HttpError(_MALFORMED)
        found: dict[str, str] = {}
        for raw_name, raw_value in self._response.headers:
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
            found[name] = f"{found[name]}, {value}" if name in found else value
        return self._response.status, found

    def body(self) -> Iterator[bytes]:
        """Yield the body of the response as it arrives."""
        assert self._response is not None
        with self._translated_errors():
            yield from self._response.iter_stream()

    def has_unread_bytes(self) -> bool:
        """Return whether more bytes arrived than belong to the response."""
        # httpcore has no public name for this. It would take these bytes for the next response.
        connection: Any = self._pool.connections[0] if self._pool.connections else None
        while hasattr(connection, "_connection"):
            connection = connection._connection
        state = getattr(connection, "_h11_state", None)
        return state is not None and bool(state.trailing_data[0])

    def finish(self) -> bool:
        """End the exchange and return whether the connection can carry another request."""
        is_clean = not self.has_unread_bytes()
        if self._response is not None:
            self._response.close()
        return is_clean and any(
            connection.is_idle() and not connection.is_closed()
            for connection in self._pool.connections
        )

    def abort(self) -> None:
        """Make the thread that reads or writes here fail at once."""
        self.is_aborted = True
        if self._stream is not None:
            self._stream.shut_down()

    def close(self) -> None:
        if self._response is not None:
            self._response.close()
        self._pool.close()
        # The pool does not know a connection that failed while it was being set up.
        if self._stream is not None:
            self._stream.close()

    # httpcore calls the rest.

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        self.is_fresh = True
        self._is_at_proxy = self._proxy is not None
        addresses = resolve_host(host, port, self._resolve, self.deadline)
        error = HttpError("there is no address to connect to")
        for number, address in enumerate(addresses):
            try:
                # An address that does not answer must leave time for the next one.
                share = self.deadline.left() / (len(addresses) - number)
                stream = httpcore.SyncBackend().connect_tcp(
                    address, port, timeout=min(CONNECT_SECONDS, share)
                )
            except (TimeoutError, httpcore.TimeoutException):
                seconds = min(CONNECT_SECONDS, self.deadline.seconds)
                error = HttpError(f"no connection within {seconds:g} s")
            except httpcore.ConnectError as failure:
                error = describe(failure.__cause__)
            else:
                self._stream = _Stream(self, stream)
                return self._stream
        raise error

    def receive(self, stream: httpcore.NetworkStream, max_bytes: int) -> bytes:
        """Read from a stream before the deadline."""
        if not self._has_head and self._received > MAX_HEADER_BYTES:
            raise HttpError(_HEADERS_TOO_LARGE)
        try:
            data = stream.read(max_bytes, timeout=self.deadline.left())
        except (TimeoutError, httpcore.TimeoutException):
            raise self.timed_out() from None
        except httpcore.ReadError as error:
            raise self._read_error(error.__cause__) from None
        if not data and not self._received:
            raise Unanswered("the connection was closed before a response came")
        self._received += len(data)
        if self._start is not None:
            self._check_start(data)
        return data

    def secure(
        self, stream: httpcore.NetworkStream, context: ssl.SSLContext, host: str
    ) -> httpcore.NetworkStream:
        """Begin TLS on a stream before the deadline."""
        host = host.removeprefix("[").removesuffix("]")
        if host == self._endpoint.host:
            self._is_at_proxy = False
        try:
            secured = stream.start_tls(context, host, timeout=self.deadline.left())
        except (TimeoutError, httpcore.TimeoutException):
            raise HttpError(f"no TLS connection within {self.deadline.seconds:g} s") from None
        except httpcore.ConnectError as error:
            raise describe(error.__cause__) from None
        self._stream = _Stream(self, secured)
        return self._stream

    def timed_out(self) -> HttpError:
        seconds = f"{self.deadline.seconds:g} s"
        if self._received:
            return HttpError(f"the response was not complete within {seconds}")
        return HttpError(f"no response within {seconds}")

    def _read_error(self, error: BaseException | None) -> HttpError:
        if not self._received and has_peer_closed(error):
            return Unanswered("the connection was closed before a response came")
        return describe(error)

    def _check_start(self, data: bytes) -> None:
        """Recognise what is not HTTP by its first bytes instead of waiting for a line end."""
        start = ((self._start or b"") + data)[:5]
        self._start = start if len(start) < 5 else None
        if b"HTTP/".startswith(start):
            return
        if start[:1] in (b"\x15", b"\x16") and start[1:2] in (b"", b"\x03"):
            raise HttpError(
                "the server speaks TLS on this port",
                permanent=True,
                hint="Check whether the address starts with https:// there.",
            )
        raise HttpError("the response is not HTTP")

    def _on_event(self, event: str, info: dict[str, Any]) -> None:
        protocol, _, step = event.partition(".")
        if step == "send_request_headers.started":
            self._received = 0
            self._is_http2 = protocol == "http2"
            self._start = None if self._is_http2 else b""
            self._is_at_proxy = info["request"].method == b"CONNECT"

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except HttpError as error:
            if not self._is_at_proxy:
                raise
            reason = f"the proxy cannot be used: {error.reason}"
            raise HttpError(reason, permanent=error.permanent) from None
        except httpcore.ProxyError as error:
            raise _describe_proxy_error(str(error)) from None
        except httpcore.RemoteProtocolError as error:
            words = str(error)
            reason = next(
                (reason for start, reason in _PROTOCOL_ERRORS if words.startswith(start)),
                _MALFORMED,
            )
            raise HttpError(reason) from None
        except httpcore.NetworkError as error:
            # The pool has removed the cause; the argument is the same error.
            raise self._read_error(error.args[0] if error.args else None) from None
        except httpcore.LocalProtocolError:
            if self._is_http2:  # so httpcore calls what the server sent against the protocol, too
                raise HttpError(_MALFORMED) from None
            raise HttpError("HTTP cannot carry this request", permanent=True) from None
        except Exception as error:  # the boundary to socksio and h2, which raise errors of any kind
            if self._is_at_proxy:
                raise HttpError("the proxy cannot be used: it does not speak SOCKS 5") from error
            if self._is_http2:
                raise HttpError(_MALFORMED) from None
            raise


class _Stream(httpcore.NetworkStream):
    """A stream of httpcore's whose operations keep to the channel's deadline."""

    def __init__(self, channel: Channel, stream: httpcore.NetworkStream) -> None:
        self._channel = channel
        self._stream = stream
        if channel.is_aborted:
            self.shut_down()

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._channel.receive(self._stream, max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # In pieces: the limit is for one call, and a server may read slowly.
        for start in range(0, len(buffer), WRITE_BYTES):
            try:
                left = self._channel.deadline.left()
                self._stream.write(buffer[start : start + WRITE_BYTES], timeout=left)
            except (TimeoutError, httpcore.TimeoutException):
                raise self._channel.timed_out() from None

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        return self._channel.secure(self._stream, ssl_context, server_hostname or "")

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def close(self) -> None:
        self._stream.close()

    def shut_down(self) -> None:
        with suppress(OSError):  # the other side was quicker
            self.get_extra_info("socket").shutdown(socket.SHUT_RDWR)


def _open_pool(
    proxy: Proxy | None, options: dict[str, Any], tls_context: Callable[[], ssl.SSLContext]
) -> httpcore.ConnectionPool:
    if proxy is None:
        return httpcore.ConnectionPool(**options)
    if proxy.username:
        options["proxy_auth"] = (proxy.username, _Password(proxy.password))
    url = httpcore.URL(
        scheme=proxy.scheme, host=proxy.endpoint.host, port=proxy.endpoint.port, target="/"
    )
    if proxy.scheme == "socks5":
        if find_spec("socksio") is None:
            raise HttpError(
                "the proxy cannot be used: SOCKS needs the package socksio",
                permanent=True,
                hint="Run `pip install 'clawmark[socks]'`.",
            )
        return httpcore.SOCKSProxy(url, **options)
    if proxy.scheme == "https":
        options["proxy_ssl_context"] = tls_context()
    return httpcore.HTTPProxy(url, **options)


def _describe_proxy_error(words: str) -> HttpError:
    status = words[:3] if words[:3].isdigit() else ""
    if status == "407" or "username" in words.lower():
        what, is_permanent = "wants a user name and password", True
    else:
        what, is_permanent = "does not connect to the service", False
    return HttpError(
        f"the proxy {what}" + (f" (status {status})" if status else ""), permanent=is_permanent
    )
