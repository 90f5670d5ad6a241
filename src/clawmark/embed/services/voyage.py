"""Voyage: OpenAI's protocol with `input_type`, which separates queries from passages, and
`output_dimension`.
"""

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
    """Return Voyage as configured; raise EmbeddingUnavailable without a key."""
    service = configure("voyage", options, environ)
    key_facts = fingerprint_facts(
        service.name,
        service.model,
        base_url="" if service.is_default_url else service.base_url,
        dims=options.dims,
        headers=public_headers(options.headers) or None,
        queryInputType=options.query_input_type,
        documentInputType=options.document_input_type,
    )
    kinds = (options.document_input_type or "document", options.query_input_type or "query")

    def request(texts: Sequence[str], is_query: bool) -> tuple[str, bytes]:
        body: dict[str, object] = {
            "model": service.model,
            "input": list(texts),
            "input_type": kinds[is_query],
        }
        if options.dims:
            body["output_dimension"] = options.dims
        if options.encoding == "base64":  # lists of numbers are its default, and have no name
            body["encoding_format"] = options.encoding
        return "/embeddings", as_json(body)

    return service.provider(Wire(request, read_data, service.limits()), key_facts)
