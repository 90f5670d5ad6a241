"""Parse configured URLs, resolve their host names and refuse dangerous addresses.

The user's key is sent to the resolved address. Addresses that no provider can have are therefore
refused after resolution: cloud metadata, link-local, unspecified, multicast, broadcast and reserved
ones, also when they are embedded in IPv6. Private and loopback addresses are allowed: the host is
always the configured one, and local servers such as Ollama run there. `config.urls` checks the URL
as it is written in the configuration."""

from __future__ import annotations

import ipaddress
import queue
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias
from urllib.parse import unquote_to_bytes

from clawmark.config.urls import problem_with
from clawmark.net.http_error import Deadline, HttpError

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve: TypeAlias = Callable[[str, int], Sequence[str]]
"""(host, port) -> its addresses; raises OSError when it has none."""

LINK_LOCAL = "a link-local address"
METADATA = "an address that serves a cloud's credentials"

_REFUSED = tuple(
    (ipaddress.ip_network(network), reason)
    for network, reason in (
        ("169.254.169.254/32", METADATA),  # AWS, Google, Azure, DigitalOcean, Oracle
        ("169.254.170.0/24", METADATA),  # AWS containers
        ("fd00:ec2::/32", METADATA),  # AWS over IPv6
        ("fd20:ce::254/128", METADATA),  # Google over IPv6
        ("100.100.100.200/32", METADATA),  # Alibaba
        ("168.63.129.16/32", METADATA),  # Azure
        ("192.0.0.192/32", METADATA),  # Oracle, first generation
        ("169.254.0.0/16", LINK_LOCAL),
        ("fe80::/10", LINK_LOCAL),
        ("255.255.255.255/32", "the broadcast address"),
        ("0.0.0.0/8", "an unspecified address"),
        ("::/128", "an unspecified address"),
        ("224.0.0.0/4", "a multicast address"),
        ("ff00::/8", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
    )
)
_LOOPBACK = ipaddress.ip_address("::1")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_LOCAL_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = ipaddress.IPv6Network("::/96")


class Endpoint(NamedTuple):
    """The parts of a configured URL."""

    scheme: str
    host: str
    """A name, or an address without brackets."""
    port: int
    path: str
    query: str

    @property
    def has_default_port(self) -> bool:
        return self.port == (443 if self.scheme == "https" else 80)

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.has_default_port else f"{host}:{self.port}"


class Proxy(NamedTuple):
    """A configured proxy; user name and password are empty when it needs none."""

    scheme: str
    """`http`, `https` or `socks5`."""
    endpoint: Endpoint
    username: bytes
    password: bytes


@lru_cache(maxsize=64)
def parse_url(url: str) -> Endpoint:
    """Split a configured URL; raise a permanent HttpError when it is refused."""
    if problem := problem_with(url):
        raise HttpError(
            f"the address is refused: {problem}",
            permanent=True,
            hint="Check memorySearch.remote.baseUrl.",
        )
    scheme, _, rest = url.partition("://")
    place, _, query = rest.partition("?")
    authority, slash, path = place.partition("/")
    host, _, port = (
        authority.rpartition(":") if authority.rpartition(":")[2].isdigit() else (authority, "", "")
    )
    scheme = scheme.lower()
    return Endpoint(
        scheme=scheme,
        host=host.removeprefix("[").removesuffix("]").rstrip(".").lower(),
        port=int(port or (443 if scheme == "https" else 80)),
        path=(slash + path).rstrip("/"),
        query=query,
    )


def parse_proxy(url: str) -> Proxy | None:
    """Split the URL of a proxy, which may hold a user name and a password; None without one."""
    if not url:
        return None
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower().replace("socks5h", "socks5")
    if scheme not in ("http", "https", "socks5"):
        raise HttpError(
            "the address of the proxy must start with http://, https:// or socks5://",
            permanent=True,
        )
    login, _, place = rest.rpartition("@")
    username, _, password = login.partition(":")
    try:
        endpoint = parse_url(f"{'http' if scheme == 'socks5' else scheme}://{place}")
    except HttpError as error:
        raise HttpError(f"the proxy cannot be used: {error.reason}", permanent=True) from None
    if scheme == "socks5" and not place.rstrip("/").endswith(f":{endpoint.port}"):
        endpoint = endpoint._replace(port=1080)
    return Proxy(
        scheme=scheme,
        endpoint=endpoint,
        username=unquote_to_bytes(username),
        password=unquote_to_bytes(password),
    )


def resolve_host(host: str, port: int, resolve: Resolve, deadline: Deadline) -> list[str]:
    """Return the addresses of a host that may be connected to; raise HttpError without any."""
    try:
        return allowed_addresses(_look_up(host, port, resolve, deadline))
    except AddressRefused as refused:
        raise HttpError(
            f"{host} resolves to {refused.reason}, which is refused",
            permanent=True,
            hint="Check memorySearch.remote.baseUrl, and the DNS records of that name.",
        ) from None


def system_resolve(host: str, port: int) -> list[str]:
    """Ask the system's resolver."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def _look_up(host: str, port: int, resolve: Resolve, deadline: Deadline) -> Sequence[str]:
    """Resolve in a thread: the system's resolver has no time limit that a caller could set."""
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        pass
    results: queue.SimpleQueue[Sequence[str] | Exception] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            results.put(resolve(host, port))
        except (OSError, UnicodeError) as error:  # the latter for a name with an overlong label
            results.put(error)

    threading.Thread(target=look_up, name="clawmark-resolve", daemon=True).start()
    try:
        result = results.get(timeout=deadline.left())
    except (queue.Empty, TimeoutError):
        raise HttpError(f"the name {host} was not resolved within {deadline.seconds:g} s") from None
    if isinstance(result, Exception):
        raise HttpError(
            f"the name {host} does not resolve",
            hint="Check the address for typing errors, and whether this machine is online.",
        )
    return result


class AddressRefused(Exception):
    """None of the addresses may be connected to; `reason` completes "it resolves to ..."."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def allowed_addresses(addresses: Sequence[str]) -> list[str]:
    """Return the addresses in their order; a single dangerous one refuses the name altogether.

    IPv6 link-local addresses are only left out: on a LAN they accompany the address that works.
    """
    allowed: list[str] = []
    left_out = ""
    for text in addresses:
        reason = refusal_reason(text)
        if reason == LINK_LOCAL and ":" in text:
            left_out = reason
        elif reason:
            raise AddressRefused(reason)
        elif text not in allowed:
            allowed.append(text)
    if not allowed:
        raise AddressRefused(left_out or "no address at all")
    return allowed


def refusal_reason(text: str) -> str:
    """Return why this address is refused; empty when it is allowed."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return "no address at all"
    for form in (address, *_embedded(address)):
        for network, reason in _REFUSED:
            if form.version == network.version and form in network:
                return reason
    return ""


def _embedded(address: Address) -> Iterator[Address]:
    """Yield the IPv4 addresses that an IPv6 address reaches by translation or tunnels."""
    if isinstance(address, ipaddress.IPv4Address):
        return
    number = int(address)
    low = ipaddress.IPv4Address(number & 0xFFFFFFFF)
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if address in _NAT64 or (address in _COMPATIBLE and address != _LOOPBACK):
        yield low
    if address in _LOCAL_NAT64:
        # The operator chooses the length of the prefix (RFC 6052): 96 bits, or 48 with a zero byte
        # in the middle.
        yield low
        yield ipaddress.IPv4Address((number >> 48 & 0xFFFF0000) | (number >> 40 & 0xFFFF))
    if number >> 32 & 0xFFFFFFFF in (0x00005EFE, 0x02005EFE):  # ISATAP
        yield low
