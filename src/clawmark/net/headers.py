"""Request headers and JSON bodies, and which header values are secret."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

JSON_TYPE = {"Content-Type": "application/json"}
MIN_SECRET_LENGTH = 6
"""Shorter ones are words that people give to local servers; masking every `x` protects nothing."""

_SECRET_NAME = re.compile(r"auth|key|token|secret|cookie|password|credential", re.IGNORECASE)
_KEY_HEADERS = ("authorization", "x-goog-api-key", "api-key", "x-api-key")


def as_json(value: object) -> bytes:
    """Return a request body."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def bearer(key: str) -> dict[str, str]:
    """Return the header that most services want a key in; nothing without a key."""
    return {"Authorization": f"Bearer {key}"} if key else {}


def has_key(headers: Mapping[str, str]) -> bool:
    """Return whether these headers already carry a key."""
    return any(name.lower() in _KEY_HEADERS for name in headers)


def join_headers(*parts: Mapping[str, str]) -> dict[str, str]:
    """Join headers; a later one replaces an earlier one of the same name in any case."""
    joined: dict[str, tuple[str, str]] = {}
    for part in parts:
        for name, value in part.items():
            joined[name.lower()] = (name, value)
    return dict(joined.values())


def secrets_of(keys: Sequence[str], headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return what must never be printed: the keys, and the values of headers that may hold one."""
    hidden = [value for name, value in headers.items() if _SECRET_NAME.search(name)]
    # "Authorization: Bearer abc" hides abc, with or without the word before it.
    words = [value.split()[-1] for value in hidden if value.split()]
    found = (*keys, *hidden, *words)
    return tuple(dict.fromkeys(value for value in found if len(value) >= MIN_SECRET_LENGTH))


def public_headers(headers: Mapping[str, str]) -> list[list[str]]:
    """Return the headers without secrets, sorted."""
    pairs = [[name, value] for name, value in headers.items() if not _SECRET_NAME.search(name)]
    return sorted(pairs, key=lambda pair: (pair[0].lower(), pair[0]))
