"""OpenAI: `POST {base}/embeddings` with a list of texts, the same for queries and passages.

The fingerprint of a plain configuration is that of OpenClaw 2026.3; a chosen number of dimensions
or an input type is added to it. `compatible` serves other services with this protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clawmark.embed.openclaw_keys import openai_facts
from clawmark.embed.services.parsing import read_data
from clawmark.embed.services.wire import (
    Limits,
    Provider,
    RemoteOptions,
    Wire,
    configure,
    fingerprint_facts,
)
from clawmark.net.headers import JSON_TYPE, as_json, join_headers, public_headers


def provider(options: RemoteOptions, environ: Mapping[str, str]) -> Provider:
    """Return OpenAI as configured; raise EmbeddingUnavailable without a key."""
    service = configure("openai", options, environ)
    key_facts = fingerprint_facts(
        service.name,
        service.model,
        base_url=service.base_url,
        dims=options.dims,
        headers=public_headers(join_headers(JSON_TYPE, options.headers)),
        queryInputType=options.query_input_type,
        documentInputType=options.document_input_type,
    )
    made = service.provider(wire(service.model, service.limits(), options), key_facts)
    return made._replace(openclaw_facts=lambda: openai_facts(options, service.model))


def wire(
    model: str, limits: Limits, options: RemoteOptions, prompts: tuple[str, str] = ("", "")
) -> Wire:
    """Return OpenAI's wire format; only what is configured is sent besides model and input."""

    def request(texts: Sequence[str], is_query: bool) -> tuple[str, bytes]:
        prompt = prompts[0] if is_query else prompts[1]
        body: dict[str, object] = {"model": model, "input": [prompt + text for text in texts]}
        if options.dims:
            body["dimensions"] = options.dims
        if kind := options.query_input_type if is_query else options.document_input_type:
            body["input_type"] = kind
        if options.encoding:
            body["encoding_format"] = options.encoding
        return "/embeddings", as_json(body)

    return Wire(request, read_data, limits)
