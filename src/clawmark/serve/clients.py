"""Who sends a request: the address behind trusted proxies, the token, and whether the connection
is encrypted."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from clawmark.model.errors import ConfigError
from clawmark.net.server.requests import Headers, Scope, values_of

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
_LOOPBACK = ("127.0.0.0/8", "::1/128")
_UNKNOWN = "0.0.0.0"
MOST_HOPS = 20


class Proxies(NamedTuple):
    """The reverse proxies whose headers are believed."""

    networks: tuple[Network, ...] = ()

    def trusts(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        mapped = getattr(found, "ipv4_mapped", None)
        return any((mapped or found) in network for network in self.networks)


class Client(NamedTuple):
    """Who sends a request."""

    address: str
    is_forwarded: bool
    """Whether a trusted proxy passed it on."""
    is_trusted: bool
    """Whether it came from a trusted proxy or from this machine."""
    is_https: bool
    """Whether the proxy says that the client's connection is encrypted."""


def read_proxies(given: Iterable[str]) -> Proxies:
    """Parse addresses and networks; loopback addresses are always trusted."""
    networks = list[Network]()
    for text in (*_LOOPBACK, *given):
        try:
            networks.append(ipaddress.ip_network(text, strict=False))
        except ValueError:
            raise ConfigError(
                f"serve.trustedProxies has {text[:60]!a}, which is not an IP address or a network.",
                key="serve.trustedProxies",
                hint="Write addresses such as 10.0.0.5 or networks such as 10.0.0.0/8.",
            ) from None
    return Proxies(tuple(networks))


def client_of(scope: Scope, proxies: Proxies) -> Client:
    """Return who sends a request.

    The last address of X-Forwarded-For that is not a trusted proxy counts: what stands before it
    may be invented by the client."""
    peer = (scope.get("client") or (_UNKNOWN, 0))[0]
    headers: Headers = scope["headers"]
    is_trusted = proxies.trusts(peer)
    forwarded = values_of(headers, b"x-forwarded-for") if is_trusted else []
    address = peer
    for text in reversed(b",".join(forwarded).decode("latin-1").split(",")[-MOST_HOPS:]):
        one = _address(text.strip())
        if not one:
            break  # what stands before it cannot be trusted either
        address = one
        if not proxies.trusts(one):
            break
    scheme = values_of(headers, b"x-forwarded-proto") if is_trusted else []
    is_https = len(scheme) == 1 and scheme[0].strip().lower() == b"https"
    return Client(
        address=address, is_forwarded=bool(forwarded), is_trusted=is_trusted, is_https=is_https
    )


def bearer_of(headers: Headers) -> str | None:
    """Return the token of a request; None without one, empty if it is not sent properly."""
    given = values_of(headers, b"authorization")
    if not given:
        return None
    scheme, _, value = (given[0] if len(given) == 1 else b"").partition(b" ")
    return value.strip().decode("latin-1") if scheme.lower() == b"bearer" else ""


def cookie_of(headers: Headers, name: str) -> str:
    """Return the value of a cookie; empty without it."""
    start = f"{name}=".encode()
    pairs = (pair.strip() for line in values_of(headers, b"cookie") for pair in line.split(b";"))
    return next((one[len(start) :].decode("latin-1") for one in pairs if one.startswith(start)), "")


def limited_as(address: str) -> str:
    """Return whose requests count together: an address, or the network of an IPv6 address.

    One customer of a provider usually has a whole /64 network."""
    try:
        found = ipaddress.IPv6Address(address)
    except ValueError:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(found), 64), strict=False))


def _address(text: str) -> str:
    """Return an address of X-Forwarded-For without its port; empty if it is not an address."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return ""
