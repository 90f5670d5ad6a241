"""What a name resolved to in; the addresses that may be dialled out.

The user's key travels to whatever is dialled, so addresses that can only be a trap are refused
after resolution: cloud metadata, link-local, unspecified, multicast, broadcast and reserved ones,
also when they are wrapped in IPv6. Private and loopback addresses pass, because the only host ever
asked for is the configured one, and Ollama lives there. What is wrong with an address as it is
written in the configuration is `config.urls`' matter."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from typing import TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

LINK_LOCAL = "a link-local address"
METADATA = "an address that serves a cloud's credentials"

_REFUSED = tuple(
    (ipaddress.ip_network(network), why)
    for network, why in (
        ("169.254.169.254/32", METADATA),  # AWS, Google, Azure, DigitalOcean, Oracle
        ("169.254.170.0/24", METADATA),  # AWS containers
        ("fd00:ec2::/32", METADATA),  # AWS over IPv6
        ("fd20:ce::254/128", METADATA),  # Google over IPv6
        ("100.100.100.200/32", METADATA),  # Alibaba
        ("168.63.129.16/32", METADATA),  # Azure's wire server
        ("192.0.0.192/32", METADATA),  # Oracle, the first generation
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


class AddressRefused(Exception):
    """None of the addresses may be dialled; `why` ends the sentence "it resolves to …"."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def dialable(addresses: Sequence[str]) -> list[str]:
    """The addresses in their order; one that is a trap refuses the name altogether.

    Only IPv6 link-local ones are merely left out: on a LAN they come beside the address that works.
    """
    good = []
    left_out = ""
    for text in addresses:
        why = problem_with(text)
        if why == LINK_LOCAL and ":" in text:
            left_out = why
        elif why:
            raise AddressRefused(why)
        elif text not in good:
            good.append(text)
    if not good:
        raise AddressRefused(left_out or "no address at all")
    return good


def problem_with(text: str) -> str:
    """What kind of refused address this is; empty when it may be dialled."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return "no address at all"
    for form in (address, *_wrapped(address)):
        for network, why in _REFUSED:
            if form.version == network.version and form in network:
                return why
    return ""


def _wrapped(address: Address) -> Iterator[Address]:
    """The IPv4 addresses that an IPv6 address leads to on networks that translate or tunnel."""
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
        # The operator chose how long the prefix is (RFC 6052): 96 bits, or 48 with a byte of zeros
        # in the middle.
        yield low
        yield ipaddress.IPv4Address((number >> 48 & 0xFFFF0000) | (number >> 40 & 0xFFFF))
    if number >> 32 & 0xFFFFFFFF in (0x00005EFE, 0x02005EFE):  # ISATAP
        yield low
