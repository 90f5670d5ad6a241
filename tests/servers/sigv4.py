"""Whether a request carries a right AWS Signature, version 4: computed again from the request and
the secret.

Comes in: a request as it was received. Goes out: why its signature is wrong, or nothing. Clock and
session tokens are not checked."""

from __future__ import annotations

import hashlib
import hmac
import re
from urllib.parse import parse_qsl, quote

from loopback import Request

_SHAPE = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, "
    r"?SignedHeaders=([a-z0-9;-]+), ?"
    r"Signature=([0-9a-f]{64})"
)


def problem_with_signature(request: Request, access_key: str, secret: str) -> str:
    """Why the signature is wrong; empty when it is right."""
    shape = _SHAPE.fullmatch(request.headers.get("authorization", ""))
    if not shape:
        return "the Authorization header is no AWS4-HMAC-SHA256 signature"
    key_id, day, region, service, names, signature = shape.groups()
    stamp = request.headers.get("x-amz-date", "")
    signed = names.split(";")
    if key_id != access_key:
        return "the access key is not known"
    if service != "bedrock" or not stamp.startswith(day):
        return "the credential's service or date is wrong"
    if signed != sorted(signed) or not {"host", "x-amz-date"} <= set(signed):
        return "host and x-amz-date must be signed, in order"
    canonical = "\n".join(
        [
            request.method,
            quote(request.path, safe="/-_.~"),  # the path of the request line, encoded once more
            "&".join(
                f"{_q(name)}={_q(value)}"
                for name, value in sorted(parse_qsl(request.query, keep_blank_values=True))
            ),
            *(f"{name}:{' '.join(request.headers.get(name, '').split())}" for name in signed),
            "",
            names,
            hashlib.sha256(request.body).hexdigest(),
        ]
    )
    scope = f"{day}/{region}/{service}/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    right = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    return "" if hmac.compare_digest(right, signature) else "the signature does not match"


def _q(text: str) -> str:
    return quote(text, safe="-_.~")
