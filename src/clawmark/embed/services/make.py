"""Make the embedder of a remote service from the options of the configuration.

Imported only when a service is configured: the HTTP stack is not part of a cold local search.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from importlib import import_module

from clawmark.config.check import fill_in
from clawmark.config.schema import RemoteBatch
from clawmark.embed.base import Embedder
from clawmark.embed.batch.run import BatchOptions
from clawmark.embed.embedder_options import EmbedderContext, EmbeddingOptions
from clawmark.embed.known_services import COMPATIBLE, REMOTE
from clawmark.embed.services import compatible
from clawmark.embed.services.ledger import Ledger
from clawmark.embed.services.ollama import list_models
from clawmark.embed.services.remote import RemoteEmbedder
from clawmark.embed.services.settings import remote_options
from clawmark.embed.services.wire import provider_key
from clawmark.model.errors import ClawmarkError, ConfigError, EmbeddingUnavailable
from clawmark.model.providers import embedding_facts
from clawmark.net.circuit_breaker import Breaker
from clawmark.net.client import HttpError

SLOW_ANSWER = 0.5
"""Seconds after which an Ollama that failed to answer is not contacted again for a while. One that
is not running refuses the connection at once, and is noticed as soon as it is started."""


def make_remote(name: str, options: EmbeddingOptions, context: EmbedderContext) -> Embedder:
    """The embedder of a service that has a module of its own, or of an OpenAI-compatible one."""
    environ = context.environ
    remote = remote_options(options.model, options.dims, options.remote, environ)
    if name in COMPATIBLE:
        provider = compatible.provider(remote, environ, name)
    else:
        provider = import_module(f"clawmark.embed.services.{name}").provider(remote, environ)
    key = provider_key(provider.key_facts)

    def known_dims() -> int:
        return context.dims_of(provider.name, provider.model, key)

    if not provider.dims:
        provider = provider._replace(dims=known_dims())
    return RemoteEmbedder(
        provider,
        breaker=Breaker(os.path.join(context.state_dir, "providers", f"{key[:16]}.json")),
        ledger=Ledger(
            os.path.join(context.state_dir, "ledger.json"), daily_tokens=options.remote.daily_tokens
        ),
        proxy=fill_in(options.remote.proxy, "memorySearch.remote.proxy", environ),
        batch=batch_options(options.remote.batch),
        batch_dir=context.batch_dir,
        has_worked=lambda: known_dims() == provider.dims,
    )


def make_from_entry(
    name: str, entry: Mapping[str, object], options: EmbeddingOptions, context: EmbedderContext
) -> Embedder:
    """The embedder of a service that `models.providers` describes. `memorySearch.remote` takes
    precedence; the entry's key is sent to the entry's address only."""
    remote, url, key = options.remote, entry.get("baseUrl"), entry.get("apiKey")
    headers = entry.get("headers")
    if not remote.base_url:
        own = headers.items() if isinstance(headers, dict) else ()
        remote = remote._replace(
            base_url=url if isinstance(url, str) else "",
            api_key=remote.api_key or (key if isinstance(key, (str, dict)) else ""),
            headers=remote.headers or {name: text for name, text in own if isinstance(text, str)},
        )
    options = options._replace(remote=remote)
    if name in (*REMOTE, *COMPATIBLE):
        return make_remote(name, options, context)
    api = str(entry.get("api") or "openai-completions")
    if api != "ollama" and not api.startswith("openai"):
        raise EmbeddingUnavailable(
            f'models.providers.{name} has the api "{api}", which has no embeddings.',
            provider=name,
            hint="Set memorySearch.provider to a service that makes embeddings.",
        )
    kind = "ollama" if api == "ollama" else "openai-compatible"
    model = options.model.removeprefix(f"{name}/") or (
        "" if kind == "ollama" else embedding_facts("openai").model
    )
    try:
        return make_remote(kind, options._replace(model=model), context)
    except ConfigError as error:
        raise EmbeddingUnavailable(
            f"models.providers.{name} cannot be used: {error.message}",
            provider=name,
            hint=error.hint,
        ) from None


def ollama_can_embed(options: EmbeddingOptions, context: EmbedderContext) -> bool:
    """Whether Ollama answers within a second and has an embedding model; after a timeout it is not
    contacted for a minute.
    """
    breaker = Breaker(os.path.join(context.state_dir, "providers", "ollama-models.json"))
    began = time.monotonic()
    try:
        breaker.check("ollama")
        remote = remote_options(options.model, options.dims, options.remote, context.environ)
        models = list_models(remote, context.environ, seconds=1.0)
    except (HttpError, ValueError, ClawmarkError):
        if time.monotonic() - began > SLOW_ANSWER:
            breaker.failed("it did not answer in time")
        return False
    breaker.succeeded()
    return bool(models)


def batch_options(batch: RemoteBatch) -> BatchOptions:
    """Return whether and how batch jobs are used."""
    return BatchOptions(
        enabled=batch.enabled,
        wait=batch.wait,
        concurrency=batch.concurrency,
        poll_ms=batch.poll_interval_ms,
        timeout_minutes=batch.timeout_minutes,
    )
