"""What a reranker is to Clawmark, and how the configured one is made.

A reranker reads a question and some passages together and says how well each one answers it.
`rerank_onnx` runs a model in this process, `rerank_http` asks a service. Which passages are judged,
and what becomes of the scores, is left to `search`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from clawmark.config.check import fill_in
from clawmark.config.urls import problem_with
from clawmark.embed.rerank.http import SERVICES, HttpReranker
from clawmark.embed.rerank.onnx import OnnxReranker
from clawmark.model.errors import ConfigError, RerankError
from clawmark.net.circuit_breaker import Breaker

if TYPE_CHECKING:
    from clawmark.config.schema import RerankOptions

_KEY = "memorySearch.query.rerank."


class Reranker(Protocol):
    """Scores passages against a question; safe to use from several threads."""

    @property
    def label(self) -> str:
        """The model and where it runs, for people."""
        ...

    def rerank(self, query: str, texts: Sequence[str], *, seconds: float) -> list[float]:
        """How well each text answers the query, 0 to 1, in the order of the texts.

        Raises RerankError when it fails, and when it is not done within `seconds`.
        """
        ...


class Unusable:
    """Stands for a reranker that could not be made, and says why whenever it is asked."""

    def __init__(self, label: str, error: RerankError) -> None:
        self.label = label
        self._error = error

    def rerank(self, query: str, texts: Sequence[str], *, seconds: float) -> list[float]:
        raise self._error


def make_reranker(
    options: RerankOptions, environ: Mapping[str, str], state_dir: str, *, proxy: str = ""
) -> Reranker:
    """The configured reranker; nothing is loaded or asked yet.

    Raises RerankError when something is missing.
    """
    if options.provider == "onnx":
        if not options.model:
            raise RerankError(
                f'{_KEY}provider is "onnx", but no model is named.',
                hint=f"Set {_KEY}model to the folder of a cross-encoder.",
            )
        return OnnxReranker(options.model)

    service = SERVICES[options.provider]
    try:
        key = _secret(options.api_key, environ) or next(
            (environ[name] for name in service.keys if environ.get(name)), ""
        )
        base_url = _address(options.base_url, environ) or service.base_url
        proxy = _filled(proxy, "memorySearch.remote.proxy", environ)
    except ConfigError as error:
        raise RerankError(error.message, hint=error.hint) from None
    if not key.strip() and base_url == service.base_url:
        raise RerankError(
            f"There is no key for the reranker {options.provider}: {service.keys[0]} is not set.",
            hint=f"Set {service.keys[0]} or {_KEY}apiKey.",
        )
    if not key.isascii() or not key.isprintable():
        raise RerankError(
            f"The key of the reranker {options.provider} holds characters that no key has."
        )
    breaker = Breaker(os.path.join(state_dir, "providers", f"rerank-{options.provider}.json"))
    model = options.model or service.model
    return HttpReranker(
        service=service,
        model=model,
        base_url=base_url,
        key=key.strip(),
        breaker=breaker,
        proxy=proxy,
    )


def _secret(value: object, environ: Mapping[str, str]) -> str:
    if isinstance(value, Mapping):  # OpenClaw's reference to a secret: {source: "env", id: "NAME"}
        return environ.get(str(value.get("id", "")), "")
    return _filled(str(value or ""), f"{_KEY}apiKey", environ)


def _filled(value: str, key: str, environ: Mapping[str, str]) -> str:
    return fill_in(value, key, environ) if value else ""


def _address(value: str, environ: Mapping[str, str]) -> str:
    url = _filled(value, f"{_KEY}baseUrl", environ).strip().rstrip("/")
    problem = problem_with(url) if url else ""
    if problem:
        raise ConfigError(f"{_KEY}baseUrl is refused: {problem}.", key=f"{_KEY}baseUrl")
    return url
