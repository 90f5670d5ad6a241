"""Voyage: OpenAI's language with `input_type`, which tells questions from passages, and
`output_dimension`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clawmark.embed.models import look_up, plain_name
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

NAME = "voyage"
BASE_URL = "https://api.voyageai.com/v1"
MODEL = "voyage-4-large"
KEY = "VOYAGE_API_KEY"

TEXTS = 1000
TOKENS = {
    "voyage-4-lite": 1_000_000,
    "voyage-3.5-lite": 1_000_000,
    "voyage-4": 320_000,
    "voyage-3.5": 320_000,
    "voyage-2": 320_000,
}
"""Documented for one request; every other model takes 120,000."""


def provider(options: RemoteOptions, environ: Mapping[str, str]) -> Provider:
    """Voyage as configured; raises EmbeddingUnavailable without a key."""
    model = pick_model(options, MODEL, "voyage/")
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
        queryInputType=options.query_input_type,
        documentInputType=options.document_input_type,
    )
    limits = Limits(TEXTS, TOKENS.get(plain_name(model), 120_000), look_up(model).text_tokens)
    return make_provider(
        NAME, model, base_url, key, options, wire=wire(model, options, limits), key_facts=key_facts
    )


def wire(model: str, options: RemoteOptions, limits: Limits) -> Wire:
    """Voyage's language."""
    kinds = (options.document_input_type or "document", options.query_input_type or "query")

    def request(texts: Sequence[str], is_query: bool) -> tuple[str, bytes]:
        body: dict[str, object] = {
            "model": model,
            "input": list(texts),
            "input_type": kinds[is_query],
        }
        if options.dims:
            body["output_dimension"] = options.dims
        if (
            options.encoding == "base64"
        ):  # lists of numbers are what it sends unasked, and `float` is no name it knows
            body["encoding_format"] = options.encoding
        return "/embeddings", as_json(body)

    return Wire(request, read_data, limits)
