"""Check the address of a service before the user's key is sent there.

Only http and https addresses pass. Refused are names and numbers of cloud metadata services,
link-local, multicast and unspecified addresses, addresses in octal or hexadecimal, and user names
and keys in the address, where logs would show them. Private and loopback addresses are allowed
(Ollama). `net` checks again what a name resolves to."""

from __future__ import annotations

import ipaddress
import re

_SHAPE = re.compile(r"(https?)://([^/?#\\]*)([/?][^#\\]*)?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]]+)(?::([0-9]{1,5}))?")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.IGNORECASE)
_DISGUISED = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+))*", re.IGNORECASE)
_KEY = re.compile(
    r"[?&](?:[a-z0-9_-]*[_-])?(?:api|subscription)?[_-]?"
    r"(?:key|token|secret|password|sig|signature)=",
    re.IGNORECASE,
)
_QUAD = re.compile(r"[0-9]{1,3}(?:[.-][0-9]{1,3}){3}")

_NOT_AN_ADDRESS = "its host is not an address; write the four decimal numbers"
_METADATA_NAMES = (
    "metadata.google.internal",
    "metadata.goog",
    "metadata",
    "instance-data",
    "instance-data.ec2.internal",
)
_METADATA_ADDRESSES = ("fd00:ec2::254", "100.100.100.200", "168.63.129.16", "fd20:ce::254")


def problem_with(url: str) -> str:
    """Why this address is refused, as the end of a sentence; empty when it is not."""
    if not url.isascii() or not url.isprintable() or " " in url:
        return "it holds blanks, control characters or letters outside ASCII"
    shape = _SHAPE.fullmatch(url)
    if not shape:
        return "it must start with http:// or https:// and may have no # and no backslash"
    authority = shape[2]
    if "@" in authority:
        return "it may hold no user name or password; use remote.apiKey or remote.headers"
    if _KEY.search(shape[3] or ""):
        return "it may hold no key; use remote.apiKey or remote.headers"
    parts = _AUTHORITY.fullmatch(authority)
    if not parts:
        return "it has no host"
    if parts[2] and not 0 < int(parts[2]) < 65536:
        return f"{parts[2]} is not a port"
    return _problem_with_host(parts[1].rstrip(".").lower())


def _problem_with_host(host: str) -> str:
    if host.startswith("["):
        return _problem_with_address(host[1:-1])
    if _DISGUISED.fullmatch(host):
        return _problem_with_address(host)
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        return "its host is not a valid host name"
    if host in _METADATA_NAMES:
        return "that host serves a cloud's credentials"
    for quad in _QUAD.findall(host):  # names such as 169.254.169.254.nip.io resolve to their digits
        problem = _problem_with_address(quad.replace("-", "."))
        if problem and problem != _NOT_AN_ADDRESS:
            return problem
    return ""


def _problem_with_address(text: str) -> str:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return _NOT_AN_ADDRESS
    mapped = getattr(address, "ipv4_mapped", None)
    address = mapped if mapped is not None else address
    if str(address) in _METADATA_ADDRESSES:
        return "that address serves a cloud's credentials"
    if address.is_link_local or address.is_multicast or address.is_unspecified:
        return "link-local, multicast and unspecified addresses are not allowed"
    if address.version == 4 and str(address).startswith("0."):
        return "addresses that start with 0 are not allowed"
    return ""
