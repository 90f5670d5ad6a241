"""Mistral: OpenAI's language with smaller requests; `mistral-embed` has one kind of text and one
size of vector.

`codestral-embed` lets one choose the size, under a name of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clawmark.embed.models import look_up
from clawmark.embed.services.parsing import read_data
from clawmark.embed.services.wire import (
    Limits,
    Provider,
    RemoteOptions,
    Wire,
    as_json,
    facts,
    find_key,
    make_provider,
    names_a_key,
    need_key,
    pick_base,
    pick_model,
    public_headers,
)

NAME = "mistral"
BASE_URL = "https://api.mistral.ai/v1"
MODEL = "mistral-embed"
KEY = "MISTRAL_API_KEY"

TEXTS, TOKENS = 512, 16_384
"""What its refusals name: "Too many inputs in request" beyond 512, "Max is 16384" tokens in a
batch.
"""


def provider(options: RemoteOptions, environ: Mapping[str, str]) -> Provider:
    """Mistral as configured; raises EmbeddingUnavailable without a key."""
    model = pick_model(options, MODEL, "mistral/")
    base_url = pick_base(options, BASE_URL)
    key = find_key(options, environ, KEY)
    if not names_a_key(options.headers):
        need_key(key, NAME, model, KEY)
    key_facts = facts(
        NAME,
        model,
        base_url="" if base_url == BASE_URL else base_url,
        dims=options.dims,
        headers=public_headers(options.headers) or None,
    )
    language = wire(model, options.dims, look_up(model).text_tokens)
    return make_provider(NAME, model, base_url, key, options, wire=language, key_facts=key_facts)


def wire(model: str, dims: int, text_tokens: int) -> Wire:
    """Mistral's language."""

    def request(texts: Sequence[str], is_query: bool) -> tuple[str, bytes]:
        body: dict[str, object] = {"model": model, "input": list(texts)}
        if dims:
            body["output_dimension"] = dims
        return "/embeddings", as_json(body)

    return Wire(request, read_data, Limits(TEXTS, TOKENS, text_tokens))
