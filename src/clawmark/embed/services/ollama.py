"""Ollama: `POST /api/embed` with a list of texts, and `GET /api/tags` for the installed models.

Ollama adds no prompts, so models that were trained with prompts get them here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clawmark.embed.models import plain_name, prompts_for
from clawmark.embed.services.parsing import Numbers, Shape, check_vectors, load
from clawmark.embed.services.wire import (
    Provider,
    RemoteOptions,
    Wire,
    configure,
    fingerprint_facts,
)
from clawmark.net.client import HttpClient
from clawmark.net.headers import as_json, public_headers


def provider(options: RemoteOptions, environ: Mapping[str, str]) -> Provider:
    """Return Ollama as configured; it needs no key."""
    chosen = options._replace(base_url=_base_url(options, environ))
    service = configure("ollama", chosen, environ)
    is_default = service.is_default_url or service.base_url == "http://localhost:11434"
    key_facts = fingerprint_facts(
        service.name,
        service.model,
        base_url="" if is_default else service.base_url,
        dims=options.dims,
        headers=public_headers(options.headers) or None,
    )
    query_prompt, text_prompt = prompts_for(service.model)

    def request(texts: Sequence[str], is_query: bool) -> tuple[str, bytes]:
        prompt = query_prompt if is_query else text_prompt
        inputs = [prompt + text for text in texts]
        body: dict[str, object] = {"model": service.model, "input": inputs}
        if options.dims:
            body["dimensions"] = options.dims
        return "/api/embed", as_json(body)

    return service.provider(Wire(request, parse, service.limits()), key_facts)


def _base_url(options: RemoteOptions, environ: Mapping[str, str]) -> str:
    """Return the configured address, or OLLAMA_HOST as Ollama reads it; empty for neither."""
    host = environ.get("OLLAMA_HOST", "").strip()
    if host and "://" not in host:
        host = f"http://{host}" if ":" in host else f"http://{host}:11434"
    url = (options.base_url.strip().rstrip("/") or host).removesuffix("/v1").rstrip("/")
    return url.replace("//0.0.0.0", "//127.0.0.1")


class _Answer(Shape, total=False):
    embeddings: list[Numbers]


def parse(body: bytes, expected: int) -> list[Sequence[float]]:
    """Return the vectors, which come in the order of the texts."""
    return check_vectors(load(body, _Answer).get("embeddings"), expected)


def list_models(
    options: RemoteOptions, environ: Mapping[str, str], *, seconds: float = 1.0, proxy: str = ""
) -> list[str]:
    """Return the installed models that can embed; raise HttpError or ValueError."""
    chosen = provider(options, environ)
    client = HttpClient(chosen.base_url, chosen.headers, secrets=chosen.secrets, proxy=proxy)
    try:
        answer = client.send("GET", "/api/tags", seconds=seconds)
    finally:
        client.close()
    if answer.status != 200:
        raise ValueError(f"the response has the status {answer.status}")
    rows = load(answer.body).get("models")
    if not isinstance(rows, list):
        raise ValueError("the response has no list of models")
    names = [row.get("name") for row in rows if isinstance(row, dict)]
    return [name for name in names if isinstance(name, str) and can_embed(name)]


def can_embed(name: str) -> bool:
    """Return whether the name is that of an embedding model; Ollama's list does not say."""
    plain = plain_name(name)
    return "embed" in plain or plain.startswith(
        ("all-minilm", "bge-", "gte-", "paraphrase-", "multilingual-e5", "e5-")
    )
