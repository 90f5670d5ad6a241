"""The shape of a configured embedding service, and what every service module needs to build one.

A service module turns options and environment into a `Provider`. `remote` sends its requests and
checks the vectors; `parsing` reads responses. The caller reads the configuration."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from clawmark.embed.media_file import MediaFile
from clawmark.embed.models import look_up, plain_name
from clawmark.model.errors import ConfigError, EmbeddingUnavailable
from clawmark.model.providers import PROVIDERS, embedding_facts
from clawmark.net.headers import JSON_TYPE, bearer, has_key, join_headers, secrets_of


class RemoteOptions(NamedTuple):
    """The configuration of a remote provider; empty values mean the provider's default."""

    model: str = ""
    base_url: str = ""
    api_key: str = ""
    headers: Mapping[str, str] = {}
    dims: int = 0
    query_input_type: str = ""
    document_input_type: str = ""
    region: str = ""
    encoding: str = ""
    """`base64` where a service offers it; it is a third of the bytes of `float`."""


class Limits(NamedTuple):
    """What one request takes."""

    texts: int
    tokens: int
    """0 when no limit is known."""
    text_tokens: int
    """Tokens in one text; longer texts are cut."""
    at_once: int = 4
    """Requests at the same time."""


class Wire(NamedTuple):
    """A service's wire format."""

    request: Callable[[Sequence[str], bool], tuple[str, bytes]]
    """(texts, whether they are a query) -> the path below the base URL and the body."""
    parse: Callable[[bytes, int], list[Sequence[float]]]
    """(body, number of texts) -> the vectors in the order of the texts; raises ValueError."""
    limits: Limits
    media: Callable[[Sequence[MediaFile]], tuple[str, bytes]] | None = None
    """The same request for images and audio files; None if the model does not embed them."""


class Provider(NamedTuple):
    """A configured remote provider."""

    name: str
    model: str
    base_url: str
    headers: dict[str, str]
    """With the key in them."""
    secrets: tuple[str, ...]
    """What must never be printed."""
    wire: Wire
    dims: int
    """0 until the first response when the model is not known."""
    floor: float
    ceiling: float
    key_facts: dict[str, object]
    """What the vectors depend on, in the order in which OpenClaw hashes it."""
    keys: tuple[dict[str, str], ...] = ()
    """Headers for each of several keys; the next one is tried when a quota is used up."""
    sign: Callable[[str, str, bytes], dict[str, str]] | None = None
    """(method, path, body) -> the headers that sign this one request."""
    openclaw_facts: Callable[[], Sequence[dict[str, object]]] = tuple
    """What releases of OpenClaw hash for the same vectors where it differs; for imports."""


class Service(NamedTuple):
    """A service as configured: the model, the address and the key that are used."""

    name: str
    model: str
    base_url: str
    key: str
    options: RemoteOptions

    @property
    def is_default_url(self) -> bool:
        return self.base_url == embedding_facts(self.name).base_url

    def limits(self, text_tokens: int = 0) -> Limits:
        """Return the limits from the table of providers and the table of models."""
        facts = embedding_facts(self.name)
        return Limits(
            texts=facts.texts,
            tokens=facts.model_tokens.get(plain_name(self.model), facts.tokens),
            text_tokens=text_tokens or look_up(self.model).text_tokens,
            at_once=facts.concurrency,
        )

    def provider(self, wire: Wire, key_facts: dict[str, object]) -> Provider:
        """Return the provider, with a bearer key and what is known about the model."""
        known = look_up(self.model)
        return Provider(
            name=self.name,
            model=self.model,
            base_url=self.base_url,
            headers=join_headers(JSON_TYPE, bearer(self.key), self.options.headers),
            secrets=secrets_of([self.key], self.options.headers),
            wire=wire,
            dims=self.options.dims or known.dims,
            floor=known.floor,
            ceiling=known.ceiling,
            key_facts=key_facts,
        )


def configure(
    name: str,
    options: RemoteOptions,
    environ: Mapping[str, str],
    *prefixes: str,
) -> Service:
    """Find the model, the address and the key of a service; raise when one of them is missing.

    `prefixes` are removed from the model in addition to the provider's name.
    """
    facts, variables = embedding_facts(name), PROVIDERS[name].keys
    base_url = options.base_url.strip().rstrip("/") or facts.base_url
    _need(base_url, "memorySearch.remote.baseUrl", name, '"http://127.0.0.1:8000/v1"')
    model = options.model.strip()
    for prefix in (*prefixes, f"{name}/"):
        model = model.removeprefix(prefix)
    model = model or facts.model
    _need(model, "memorySearch.model", name, '"nomic-embed-text-v1.5"')
    found = (options.api_key, *[environ.get(variable, "") for variable in variables])
    key = next((one.strip() for one in found if one.strip()), "")
    if key or (facts.needs_key and not has_key(options.headers)):
        _check_key(key, name, model, variables[0] if variables else "memorySearch.remote.apiKey")
    return Service(name=name, model=model, base_url=base_url, key=key, options=options)


def provider_key(facts: Mapping[str, object]) -> str:
    """Return the SHA-256 hex of the facts as compact JSON: OpenClaw's fingerprint of a provider."""
    return hashlib.sha256(
        json.dumps(facts, separators=(",", ":"), ensure_ascii=False).encode()
    ).hexdigest()


def fingerprint_facts(
    provider: str,
    model: str,
    *,
    base_url: str = "",
    dims: int = 0,
    headers: list[list[str]] | None = None,
    **more: object,
) -> dict[str, object]:
    """Return what the vectors depend on, in OpenClaw's order; empty values are left out."""
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


def _check_key(key: str, provider: str, model: str, variable: str) -> None:
    hint = f"Set {variable}, or memorySearch.remote.apiKey in the configuration."
    if not key:
        message = f"No API key found for provider {provider}: {variable} is not set."
        raise EmbeddingUnavailable(message, provider=provider, model=model, hint=hint)
    if not key.isascii() or not key.isprintable():
        message = f"The API key for provider {provider} holds characters that no key has."
        raise EmbeddingUnavailable(message, provider=provider, model=model, hint=hint)


def _need(value: str, key: str, provider: str, example: str) -> None:
    if not value:
        raise ConfigError(
            f'The provider "{provider}" needs {key}.',
            key=key,
            hint=f"Set it, for example to {example}.",
        )
