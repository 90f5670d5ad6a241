"""What a remote embedding service is to Clawmark: its language, its limits, and what its vectors
depend on.

Each service has a module that turns options and environment into one `Provider`; sending, retrying
and checking are the same for all of them and live in `remote`. Here are the shapes and the few
steps every such module takes: find the key, the address and the model, join the headers, name what
the numbers depend on. Reading configuration is left to the caller, reading answers to `parsing`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from clawmark.embed.models import look_up
from clawmark.model.errors import ConfigError, EmbeddingUnavailable

JSON_TYPE = {"Content-Type": "application/json"}
SHORTEST_SECRET = 6
"""Shorter ones are words that people give to servers at home: hiding every `x` would hide the text
and protect nothing.
"""
_SECRET_NAME = re.compile(r"auth|key|token|secret|cookie|password|credential", re.IGNORECASE)


class RemoteOptions(NamedTuple):
    """What the configuration says about a remote provider; empty means the provider's own default."""

    model: str = ""
    base_url: str = ""
    api_key: str = ""
    headers: Mapping[str, str] = {}
    dims: int = 0
    query_input_type: str = ""
    document_input_type: str = ""
    region: str = ""
    encoding: str = ""
    """`base64` where a service offers it: read three times as fast as `float`, and a third of the
    bytes.
    """


class Limits(NamedTuple):
    """How much a service takes at a time."""

    texts: int
    """Texts in one request."""
    tokens: int
    """Tokens in one request; 0 when no limit is known."""
    text_tokens: int
    """Tokens in one text. Longer ones are cut; chunks never get there."""
    at_once: int = 4
    """Requests side by side."""


class Wire(NamedTuple):
    """A service's language."""

    request: Callable[[Sequence[str], bool], tuple[str, bytes]]
    """(texts, whether they are a query) -> the path below the base URL and the body."""
    parse: Callable[[bytes, int], list[Sequence[float]]]
    """(body, number of texts) -> the vectors in the order of the texts; raises ValueError with the
    reason.
    """
    limits: Limits


class Provider(NamedTuple):
    """Everything there is to know about a configured remote provider before the first request."""

    name: str
    model: str
    base_url: str
    headers: dict[str, str]
    """With the key in them."""
    secrets: tuple[str, ...]
    """What must never be printed."""
    wire: Wire
    dims: int
    """0 when only the first answer tells."""
    floor: float
    ceiling: float
    key_facts: dict[str, object]
    """What the numbers depend on, in the order in which OpenClaw hashes it."""
    keys: tuple[dict[str, str], ...] = ()
    """Header sets, one for each of several keys: the next one is tried when the quota of one is
    used up.
    """
    sign: Callable[[str, str, bytes], dict[str, str]] | None = None
    """(method, path, body) -> the headers that sign this one request."""
    openclaw_facts: Callable[[], Sequence[dict[str, object]]] = tuple
    """What releases of OpenClaw hash for the same vectors, where that may not be `key_facts`; for
    imports.
    """


def make_provider(
    name: str,
    model: str,
    base_url: str,
    key: str,
    options: RemoteOptions,
    *,
    wire: Wire,
    key_facts: dict[str, object],
) -> Provider:
    """A provider whose key goes where most want it; what is known of the model is added."""
    known = look_up(model)
    return Provider(
        name=name,
        model=model,
        base_url=base_url,
        headers=join_headers(JSON_TYPE, bearer(key), options.headers),
        secrets=secrets_of([key], options.headers),
        wire=wire,
        dims=options.dims or known.dims,
        floor=known.floor,
        ceiling=known.ceiling,
        key_facts=key_facts,
    )


def provider_key(facts: Mapping[str, object]) -> str:
    """SHA-256 hex of the facts as compact JSON: OpenClaw's fingerprint of a provider."""
    return hashlib.sha256(
        json.dumps(facts, separators=(",", ":"), ensure_ascii=False).encode()
    ).hexdigest()


def find_key(options: RemoteOptions, environ: Mapping[str, str], *names: str) -> str:
    """The configured key, or the first of these variables that is set; empty when there is none."""
    found = (options.api_key, *[environ.get(name, "") for name in names])
    return next((key.strip() for key in found if key.strip()), "")


def need_key(key: str, provider: str, model: str, variable: str) -> str:
    """The key; raises EmbeddingUnavailable when there is none or it could never be sent."""
    hint = f"Set {variable}, or memorySearch.remote.apiKey in the configuration."
    if not key:
        message = f"No API key found for provider {provider}: {variable} is not set."
        raise EmbeddingUnavailable(message, provider=provider, model=model, hint=hint)
    if not key.isascii() or not key.isprintable():
        message = f"The API key for provider {provider} holds characters that no key has."
        raise EmbeddingUnavailable(message, provider=provider, model=model, hint=hint)
    return key


def bearer(key: str) -> dict[str, str]:
    """The usual way to send a key; nothing without one."""
    return {"Authorization": f"Bearer {key}"} if key else {}


def names_a_key(headers: Mapping[str, str]) -> bool:
    """Whether the configured headers already carry the credentials."""
    return any(
        name.lower() in ("authorization", "x-goog-api-key", "api-key", "x-api-key")
        for name in headers
    )


def join_headers(*parts: Mapping[str, str]) -> dict[str, str]:
    """All headers; a later one replaces an earlier one of the same name in any case."""
    joined: dict[str, tuple[str, str]] = {}
    for part in parts:
        for name, value in part.items():
            joined[name.lower()] = (name, value)
    return dict(joined.values())


def secrets_of(keys: Sequence[str], headers: Mapping[str, str]) -> tuple[str, ...]:
    """What must never be printed: the keys, and whatever a configured header may hide."""
    hidden = [value for name, value in headers.items() if _SECRET_NAME.search(name)]
    # "Authorization: Bearer abc" hides abc, with or without the word in front.
    words = [value.split()[-1] for value in hidden if value.split()]
    return tuple(
        dict.fromkeys(value for value in (*keys, *hidden, *words) if len(value) >= SHORTEST_SECRET)
    )


def public_headers(headers: Mapping[str, str]) -> list[list[str]]:
    """The headers that may change the numbers, sorted; credentials do not, and a rotated key must
    not cost a new index.
    """
    pairs = [[name, value] for name, value in headers.items() if not _SECRET_NAME.search(name)]
    return sorted(pairs, key=lambda pair: (pair[0].lower(), pair[0]))


def pick_model(options: RemoteOptions, default: str, *prefixes: str) -> str:
    """The configured model without the provider's name in front, or the default."""
    model = options.model.strip()
    for prefix in prefixes:
        model = model.removeprefix(prefix)
    return model or default


def pick_base(options: RemoteOptions, default: str) -> str:
    """The configured address without slashes at its end, or the default."""
    return options.base_url.strip().rstrip("/") or default


def facts(
    provider: str,
    model: str,
    *,
    base_url: str = "",
    dims: int = 0,
    headers: list[list[str]] | None = None,
    **more: object,
) -> dict[str, object]:
    """What the numbers depend on, in OpenClaw's order; what is empty is left out."""
    found: dict[str, object] = {"provider": provider}
    if base_url:
        found["baseUrl"] = base_url
    found["model"] = model
    if dims:
        found["outputDimensionality"] = dims
    found.update({name: value for name, value in more.items() if value})
    if headers is not None:
        found["headers"] = headers
    return found


def as_json(value: object) -> bytes:
    """A request body."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def need(value: str, key: str, provider: str, example: str) -> str:
    """A setting that has no default; raises ConfigError."""
    if not value:
        raise ConfigError(
            f'The provider "{provider}" needs {key}.',
            key=key,
            hint=f"Set it, for example to {example}.",
        )
    return value
