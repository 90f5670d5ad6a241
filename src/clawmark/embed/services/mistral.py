"""Mistral: OpenAI's protocol, with another name for the number of dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clawmark.embed.services.parsing import read_data
from clawmark.embed.services.wire import (
    Provider,
    RemoteOptions,
    Wire,
    configure,
    fingerprint_facts,
)
from clawmark.net.headers import as_json, public_headers


def provider(options: RemoteOptions, environ: Mapping[str, str]) -> Provider:
    """Return Mistral as configured; raise EmbeddingUnavailable without a key."""
    service = configure("mistral", options, environ)
    key_facts = fingerprint_facts(
        service.name,
        service.model,
        base_url="" if service.is_default_url else service.base_url,
        dims=options.dims,
        headers=public_headers(options.headers) or None,
    )

    def request(texts: Sequence[str], is_query: bool) -> tuple[str, bytes]:
        body: dict[str, object] = {"model": service.model, "input": list(texts)}
        if options.dims:
            body["output_dimension"] = options.dims
        return "/embeddings", as_json(body)

    return service.provider(Wire(request, read_data, service.limits()), key_facts)
