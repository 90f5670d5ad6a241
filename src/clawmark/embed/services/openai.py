"""OpenAI: `POST {base}/embeddings` with a list of texts; one model for questions and passages, no
prompts.

The fingerprint of a plain configuration is that of OpenClaw 2026.3; a chosen number of dimensions
or an input type is added to it. Services that only speak like OpenAI have their own module,
`compatible`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clawmark.embed.models import look_up
from clawmark.embed.openclaw_keys import openai_facts
from clawmark.embed.services.parsing import read_data
from clawmark.embed.services.wire import (
    JSON_TYPE,
    Limits,
    Provider,
    RemoteOptions,
    Wire,
    as_json,
    facts,
    find_key,
    join_headers,
    make_provider,
    names_a_key,
    need_key,
    pick_base,
    pick_model,
    public_headers,
)

NAME = "openai"
BASE_URL = "https://api.openai.com/v1"
MODEL = "text-embedding-3-small"
KEY = "OPENAI_API_KEY"

TEXTS, TOKENS = 2048, 300_000
"""Documented for every embedding model, along with 8192 tokens a text."""


def provider(options: RemoteOptions, environ: Mapping[str, str]) -> Provider:
    """OpenAI as configured; raises EmbeddingUnavailable without a key."""
    model = pick_model(options, MODEL, "openai/")
    base_url = pick_base(options, BASE_URL)
    key = find_key(options, environ, KEY)
    if not names_a_key(options.headers):
        need_key(key, NAME, model, KEY)
    key_facts = facts(
        NAME,
        model,
        base_url=base_url,
        dims=options.dims,
        headers=public_headers(join_headers(JSON_TYPE, options.headers)),
        queryInputType=options.query_input_type,
        documentInputType=options.document_input_type,
    )
    language = wire(model, Limits(TEXTS, TOKENS, look_up(model).text_tokens), options)
    made = make_provider(NAME, model, base_url, key, options, wire=language, key_facts=key_facts)

    def openclaw_facts() -> Sequence[dict[str, object]]:
        return openai_facts(options, model, BASE_URL)

    return made._replace(openclaw_facts=openclaw_facts)


def wire(
    model: str, limits: Limits, options: RemoteOptions, prompts: tuple[str, str] = ("", "")
) -> Wire:
    """The language itself, for everyone who speaks it: only what is configured is sent beside model
    and input.
    """

    def request(texts: Sequence[str], is_query: bool) -> tuple[str, bytes]:
        before = prompts[0] if is_query else prompts[1]
        body: dict[str, object] = {"model": model, "input": [before + text for text in texts]}
        if options.dims:
            body["dimensions"] = options.dims
        if kind := options.query_input_type if is_query else options.document_input_type:
            body["input_type"] = kind
        if options.encoding:
            body["encoding_format"] = options.encoding
        return "/embeddings", as_json(body)

    return Wire(request, read_data, limits)
