"""A connection to the configured host: resolved once, every address checked, and one of exactly
these dialled.

In: an `Endpoint` and a deadline. Out: a connected socket, behind TLS for https (with the configured
name checked against the certificate) and through the given proxy if there is one; or `HttpTrouble`.
Nothing is taken from the environment but the certificate authorities. What is said on the
connection is left to `http`."""

from __future__ import annotations

import ipaddress
import queue
import socket
import threading
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from urllib.parse import unquote_to_bytes

from clawmark.config.urls import problem_with
from clawmark.net.addresses import AddressRefused, dialable
from clawmark.net.response import read_answer
from clawmark.net.stream import Deadline, HttpTrouble, Stream, close, said

if TYPE_CHECKING:
    import ssl

CONNECT_SECONDS = 5.0
"""For one address; a host that is there answers in a fraction of it."""

Resolve: TypeAlias = Callable[[str, int], Sequence[str]]
"""A host name and a port in, the addresses it has out; raises OSError when it has none."""


class Endpoint(NamedTuple):
    """An address as configured, taken apart."""

    is_secure: bool
    host: str
    """A name, or an address without brackets."""
    port: int
    path: str
    query: str

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.is_secure else 80) else f"{host}:{self.port}"


class Proxy(NamedTuple):
    """A proxy that was configured, and what it wants to know of us."""

    endpoint: Endpoint
    authorization: str


def parse_url(url: str) -> Endpoint:
    """Take a configured address apart; a wrong one is a trouble that stays."""
    problem = problem_with(url)
    if problem:
        raise HttpTrouble(
            f"the address is refused: {problem}",
            permanent=True,
            hint="Check memorySearch.remote.baseUrl.",
        )
    scheme, _, rest = url.partition("://")
    is_secure = scheme.lower() == "https"
    place, _, query = rest.partition("?")
    authority, slash, path = place.partition("/")
    host, _, port = (
        authority.rpartition(":") if authority.rpartition(":")[2].isdigit() else (authority, "", "")
    )
    name = host.removeprefix("[").removesuffix("]").rstrip(".").lower()
    return Endpoint(
        is_secure=is_secure,
        host=name,
        port=int(port or (443 if is_secure else 80)),
        path=(slash + path).rstrip("/"),
        query=query,
    )


def parse_proxy(url: str) -> Proxy | None:
    """Take the address of a proxy apart, with a user name and password if it has them; None for an
    empty one.
    """
    if not url:
        return None
    scheme, _, rest = url.partition("://")
    login, _, place = rest.rpartition("@")
    if scheme.lower() != "http":
        raise HttpTrouble("the address of the proxy must start with http://", permanent=True)
    try:
        endpoint = parse_url(f"{scheme}://{place}")
    except HttpTrouble as trouble:
        raise HttpTrouble(f"the proxy cannot be used: {trouble.reason}", permanent=True) from None
    return Proxy(endpoint, _basic(login) if login else "")


def _basic(login: str) -> str:
    user, _, password = login.partition(":")
    return "Basic " + b64encode(unquote_to_bytes(user) + b":" + unquote_to_bytes(password)).decode(
        "ascii"
    )


def dial(
    endpoint: Endpoint,
    deadline: Deadline,
    *,
    resolve: Resolve,
    context: Callable[[], ssl.SSLContext],
    proxy: Proxy | None,
) -> Stream:
    """Connect; the returned stream speaks HTTP to the endpoint, or to the proxy for plain http
    through one.
    """
    try:
        sock = _connect(proxy.endpoint if proxy else endpoint, deadline, resolve)
    except HttpTrouble as trouble:
        if proxy:
            raise HttpTrouble(
                f"the proxy cannot be used: {trouble.reason}", permanent=trouble.permanent
            ) from None
        raise
    try:
        if proxy and endpoint.is_secure:
            _ask_proxy(sock, endpoint, proxy, deadline)
        if endpoint.is_secure:
            sock = _secured(sock, endpoint.host, deadline, context())
    except BaseException:
        close(sock)
        raise
    return Stream(sock, deadline)


def _connect(endpoint: Endpoint, deadline: Deadline, resolve: Resolve) -> socket.socket:
    """Dial the addresses in their order until one answers."""
    addresses = _checked(endpoint, _lookup(endpoint, resolve, deadline))
    trouble: HttpTrouble | None = None
    for number, address in enumerate(addresses):
        try:
            # A dead first address must leave time for the second.
            return _connected(
                address,
                endpoint.port,
                min(CONNECT_SECONDS, deadline.left() / (len(addresses) - number)),
            )
        except TimeoutError:
            trouble = HttpTrouble(
                f"no connection within {min(CONNECT_SECONDS, deadline.seconds):g} s"
            )
        except OSError as error:
            trouble = said(error)
    raise trouble or HttpTrouble("there is no address to connect to")


def _connected(address: str, port: int, seconds: float) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.settimeout(seconds)
        sock.connect((address, port))
        # A request is one write; waiting for more of it would only cost time.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        close(sock)
        raise
    return sock


def _checked(endpoint: Endpoint, addresses: Sequence[str]) -> list[str]:
    try:
        return dialable(addresses)
    except AddressRefused as refused:
        raise HttpTrouble(
            f"{endpoint.host} resolves to {refused.why}, which is refused",
            permanent=True,
            hint="Check memorySearch.remote.baseUrl, and who answers for that name.",
        ) from None


def system_resolve(host: str, port: int) -> list[str]:
    """What the system says about a name."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def _lookup(endpoint: Endpoint, resolve: Resolve, deadline: Deadline) -> Sequence[str]:
    """Resolve a name in a thread of its own: the system's resolver has no time limit that a caller
    could set.
    """
    try:
        return [str(ipaddress.ip_address(endpoint.host))]
    except ValueError:
        pass

    answers: queue.SimpleQueue[Sequence[str] | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(resolve(endpoint.host, endpoint.port))
        except (OSError, UnicodeError) as error:  # the latter for a name with an overlong label
            answers.put(error)

    threading.Thread(target=ask, name="clawmark-resolve", daemon=True).start()
    try:
        answer = answers.get(timeout=deadline.left())
    except (queue.Empty, TimeoutError):
        raise HttpTrouble(
            f"the name {endpoint.host} was not resolved within {deadline.seconds:g} s"
        ) from None
    if isinstance(answer, Exception):
        hint = "Check the address for typing errors, and whether this machine is online."
        raise HttpTrouble(f"the name {endpoint.host} does not resolve", hint=hint)
    return answer


def _ask_proxy(sock: socket.socket, endpoint: Endpoint, proxy: Proxy, deadline: Deadline) -> None:
    """Have the proxy make the connection; what is said on it afterwards is none of its business."""
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    place = f"{host}:{endpoint.port}"
    lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}", "User-Agent: clawmark"]
    if proxy.authorization:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    stream = Stream(sock, deadline)
    try:
        stream.send("\r\n".join([*lines, "", ""]).encode("ascii"))
        response, _ = read_answer(stream, has_body=False)
    except OSError as error:
        raise stream.trouble(error) from None
    except HttpTrouble as trouble:
        raise HttpTrouble(
            f"the proxy cannot be used: {trouble.reason}", permanent=trouble.permanent
        ) from None
    if not 200 <= response.status < 300 or stream.buffer:
        what = (
            "wants a user name and password"
            if response.status == 407
            else "does not connect to the service"
        )
        raise HttpTrouble(
            f"the proxy {what} (status {response.status})", permanent=response.status == 407
        )


def _secured(
    sock: socket.socket, host: str, deadline: Deadline, context: ssl.SSLContext
) -> socket.socket:
    secured = context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
    try:
        secured.settimeout(deadline.left())
        secured.do_handshake()
    except TimeoutError:
        close(secured)
        raise HttpTrouble(f"no secure connection within {deadline.seconds:g} s") from None
    except OSError as error:
        close(secured)
        raise said(error) from None
    except BaseException:
        close(secured)
        raise
    return secured


def new_context() -> ssl.SSLContext:
    """Certificates and names are checked; unlike the standard one it writes no key log, whatever
    the environment says.
    """
    try:
        import ssl
    except ImportError:
        raise HttpTrouble(
            "this Python was built without TLS, so https cannot be used", permanent=True
        ) from None

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_default_certs()
    return context
