"""The protocol of rerankers, and the choice of the configured one.

A reranker reads a question and passages together and scores how well each passage answers it.
`onnx` runs a model in this process, `http` uses a service."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from clawmark.embed.rerank.http import HttpReranker
from clawmark.embed.rerank.onnx import OnnxReranker
from clawmark.embed.services.settings import checked_address, filled
from clawmark.model.errors import ConfigError, RerankError
from clawmark.model.providers import PROVIDERS, rerank_facts
from clawmark.net.circuit_breaker import Breaker

if TYPE_CHECKING:
    from clawmark.config.schema import RerankOptions

_KEY = "memorySearch.query.rerank."


class Reranker(Protocol):
    """Scores passages against a question; safe to use from several threads."""

    @property
    def label(self) -> str:
        """The model and where it runs, for display."""
        ...

    def rerank(self, query: str, texts: Sequence[str], *, seconds: float) -> list[float]:
        """Return how well each text answers the query, 0 to 1, in the order of the texts.

        Raises RerankError when it fails or takes longer than `seconds`.
        """
        ...


class Unusable:
    """Replaces a reranker that could not be made; every call raises the reason."""

    def __init__(self, label: str, error: RerankError) -> None:
        self.label = label
        self._error = error

    def rerank(self, query: str, texts: Sequence[str], *, seconds: float) -> list[float]:
        raise self._error


def make_reranker(
    options: RerankOptions, environ: Mapping[str, str], state_dir: str, *, proxy: str = ""
) -> Reranker:
    """Return the configured reranker without loading it; raise RerankError when it cannot be."""
    if options.provider == "onnx":
        if not options.model:
            raise RerankError(
                f'{_KEY}provider is "onnx", but no model is named.',
                hint=f"Set {_KEY}model to the folder of a cross-encoder.",
            )
        return OnnxReranker(options.model)

    service, variables = rerank_facts(options.provider), PROVIDERS[options.provider].keys
    try:
        key = filled(options.api_key, f"{_KEY}apiKey", environ) or next(
            (environ[name] for name in variables if environ.get(name)), ""
        )
        url = filled(options.base_url, f"{_KEY}baseUrl", environ).strip().rstrip("/")
        base_url = checked_address(url, f"{_KEY}baseUrl") or service.base_url
        proxy = filled(proxy, "memorySearch.remote.proxy", environ)
    except ConfigError as error:
        raise RerankError(error.message, hint=error.hint) from None
    if not key.strip() and base_url == service.base_url:
        raise RerankError(
            f"There is no key for the reranker {options.provider}: {variables[0]} is not set.",
            hint=f"Set {variables[0]} or {_KEY}apiKey.",
        )
    if not key.isascii() or not key.isprintable():
        raise RerankError(
            f"The key of the reranker {options.provider} holds characters that no key has."
        )
    breaker = Breaker(os.path.join(state_dir, "providers", f"rerank-{options.provider}.json"))
    model = options.model or service.model
    return HttpReranker(
        provider=options.provider,
        model=model,
        base_url=base_url,
        key=key.strip(),
        breaker=breaker,
        proxy=proxy,
    )
