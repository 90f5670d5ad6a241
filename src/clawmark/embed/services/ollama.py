"""Ollama: `POST /api/embed` with a list of texts, and `GET /api/tags` for what is installed.

Models that were trained with prompts get them here, because Ollama adds none. Two requests at once
keep a home machine usable. Starting Ollama or fetching models is left to the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clawmark.embed.models import look_up, plain_name, prompts_for
from clawmark.embed.services.parsing import Numbers, Shape, check_vectors, load
from clawmark.embed.services.wire import (
    Limits,
    Provider,
    RemoteOptions,
    Wire,
    as_json,
    facts,
    find_key,
    make_provider,
    need_key,
    pick_base,
    pick_model,
    public_headers,
)
from clawmark.net.client import HttpClient

NAME = "ollama"
BASE_URL = "http://127.0.0.1:11434"
MODEL = "nomic-embed-text"
KEY = "OLLAMA_API_KEY"

TEXTS = 16
"""A processor without a graphics card takes seconds for these; there is no limit of Ollama's own.
"""
AT_ONCE = 2


def provider(options: RemoteOptions, environ: Mapping[str, str]) -> Provider:
    """Ollama as configured; no key is needed."""
    model = pick_model(options, MODEL, "ollama/")
    base_url = base_of(options, environ)
    key = find_key(options, environ, KEY)
    if key:
        need_key(key, NAME, model, KEY)
    is_default = base_url in (BASE_URL, "http://localhost:11434")
    key_facts = facts(
        NAME,
        model,
        base_url="" if is_default else base_url,
        dims=options.dims,
        headers=public_headers(options.headers) or None,
    )
    language = wire(model, options.dims, look_up(model).text_tokens)
    return make_provider(NAME, model, base_url, key, options, wire=language, key_facts=key_facts)


def base_of(options: RemoteOptions, environ: Mapping[str, str]) -> str:
    """The configured address, or the one in OLLAMA_HOST as Ollama itself reads it, or the usual
    one.
    """
    host = environ.get("OLLAMA_HOST", "").strip()
    if host and "://" not in host:
        host = f"http://{host}" if ":" in host else f"http://{host}:11434"
    return (
        pick_base(options, host or BASE_URL)
        .removesuffix("/v1")
        .rstrip("/")
        .replace("//0.0.0.0", "//127.0.0.1")
    )


def wire(model: str, dims: int, text_tokens: int) -> Wire:
    """Ollama's language, with the model's prompts."""
    for_query, for_text = prompts_for(model)

    def request(texts: Sequence[str], is_query: bool) -> tuple[str, bytes]:
        before = for_query if is_query else for_text
        body: dict[str, object] = {"model": model, "input": [before + text for text in texts]}
        if dims:
            body["dimensions"] = dims
        return "/api/embed", as_json(body)

    return Wire(
        request, parse, Limits(texts=TEXTS, tokens=0, text_tokens=text_tokens, at_once=AT_ONCE)
    )


class _Answer(Shape, total=False):
    embeddings: list[Numbers]


def parse(body: bytes, expected: int) -> list[Sequence[float]]:
    """The vectors, which come in the order of the texts."""
    return check_vectors(load(body, _Answer).get("embeddings"), expected)


def list_models(
    options: RemoteOptions, environ: Mapping[str, str], *, seconds: float = 1.0, proxy: str = ""
) -> list[str]:
    """The installed models that can embed; raises HttpError without an answer and ValueError for
    a strange one.
    """
    chosen = provider(options, environ)
    client = HttpClient(chosen.base_url, chosen.headers, secrets=chosen.secrets, proxy=proxy)
    try:
        answer = client.send("GET", "/api/tags", seconds=seconds)
    finally:
        client.close()
    if answer.status != 200:
        raise ValueError(f"the answer has the status {answer.status}")
    rows = load(answer.body).get("models")
    if not isinstance(rows, list):
        raise ValueError("the answer has no list of models")
    names = [row.get("name") for row in rows if isinstance(row, dict)]
    return [name for name in names if isinstance(name, str) and can_embed(name)]


def can_embed(name: str) -> bool:
    """Whether a model's name is that of an embedding model; Ollama's list does not say."""
    plain = plain_name(name)
    return "embed" in plain or plain.startswith(
        ("all-minilm", "bge-", "gte-", "paraphrase-", "multilingual-e5", "e5-")
    )
