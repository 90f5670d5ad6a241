"""AWS Signature, version 4: compute the headers that sign a request.

Method, path, query, the given headers and the body are signed. The path is taken from the request
line and encoded once more, as all services but S3 require."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import parse_qsl, quote

ALGORITHM = "AWS4-HMAC-SHA256"


class Credentials(NamedTuple):
    """The signer; `token` belongs to credentials that expire."""

    access_key: str
    secret_key: str
    token: str = ""


class Scope(NamedTuple):
    """What a signature is valid for."""

    region: str
    service: str


def sign(
    method: str,
    path: str,
    body: bytes,
    *,
    headers: Mapping[str, str],
    credentials: Credentials,
    scope: Scope,
    now: float,
    query: str = "",
) -> dict[str, str]:
    """Return the headers to add to a request whose `headers` include `host`."""
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    added = {"x-amz-date": stamp}
    if credentials.token:
        added["x-amz-security-token"] = credentials.token
    signed = {
        name.lower(): " ".join(value.split()) for name, value in (*headers.items(), *added.items())
    }
    names = ";".join(sorted(signed))
    canonical = canonical_request(method, path, query, signed, body)
    where = f"{stamp[:8]}/{scope.region}/{scope.service}/aws4_request"
    text = f"{ALGORITHM}\n{stamp}\n{where}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    signature = hmac.new(
        _signing_key(credentials.secret_key, where), text.encode(), hashlib.sha256
    ).hexdigest()
    credential = f"{credentials.access_key}/{where}"
    added["authorization"] = (
        f"{ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={signature}"
    )
    return added


def canonical_request(
    method: str, path: str, query: str, signed: Mapping[str, str], body: bytes
) -> str:
    """Return the request in the form that both sides compute."""
    pairs = sorted(
        (_quote(name), _quote(value)) for name, value in parse_qsl(query, keep_blank_values=True)
    )
    return "\n".join(
        (
            method,
            quote(path or "/", safe="/-_.~"),
            "&".join(f"{name}={value}" for name, value in pairs),
            *[f"{name}:{signed[name]}" for name in sorted(signed)],
            "",
            ";".join(sorted(signed)),
            hashlib.sha256(body).hexdigest(),
        )
    )


def _signing_key(secret: str, where: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in where.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def _quote(text: str) -> str:
    return quote(text, safe="-_.~")
