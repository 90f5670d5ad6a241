"""Gemini: `:batchEmbedContents` for passages, `:embedContent` for a question, and several keys that
take turns.

The first generation is told by `taskType` which of the two a text is; the second has no such field
and reads it from a prompt. Keys go into a header, never into the address. When the quota of one key
is used up the next one is tried: GEMINI_API_KEYS (several), GEMINI_API_KEY, GEMINI_API_KEY_* and
GOOGLE_API_KEY, after the configured one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TypedDict
from urllib.parse import quote

from clawmark.embed.models import look_up
from clawmark.embed.services.parsing import Numbers, Shape, check_vectors, load
from clawmark.embed.services.wire import (
    JSON_TYPE,
    Limits,
    Provider,
    RemoteOptions,
    Wire,
    as_json,
    bearer,
    facts,
    join_headers,
    make_provider,
    names_a_key,
    need_key,
    pick_model,
    public_headers,
    secrets_of,
)
from clawmark.model.errors import ConfigError

NAME = "gemini"
HOST = "https://generativelanguage.googleapis.com"
BASE_URL = f"{HOST}/v1beta"
MODEL = "gemini-embedding-001"
KEY = "GEMINI_API_KEY"

TEXTS = 100
"""More are refused: "at most 100 requests can be in one batch"."""
SECOND = "gemini-embedding-2"
SECOND_DIMS = (3072, 1536, 768)
PROMPTS = ("task: search result | query: ", "title: none | text: ")
"""How the second generation wants to be asked."""


def provider(options: RemoteOptions, environ: Mapping[str, str]) -> Provider:
    """Gemini as configured; raises EmbeddingUnavailable without a key, ConfigError for a size the
    model has not.
    """
    model = pick_model(options, MODEL, "models/", "gemini/", "google/")
    dims = _chosen_dims(model, options.dims)
    base_url = _base_of(options.base_url)
    keys = find_keys(options, environ)
    if not names_a_key(options.headers):
        need_key(keys[0] if keys else "", NAME, model, KEY)
    sets = tuple(join_headers(JSON_TYPE, _auth(key), options.headers) for key in keys)
    key_facts = facts(
        NAME,
        model,
        base_url=base_url,
        dims=dims,
        headers=public_headers(options.headers),
        prompts=list(PROMPTS) if model.startswith(SECOND) else None,
    )
    language = wire(model, dims, look_up(model).text_tokens)
    made = make_provider(NAME, model, base_url, "", options, wire=language, key_facts=key_facts)
    return made._replace(
        headers=sets[0] if sets else made.headers,
        secrets=secrets_of(
            [secret for key in keys for secret in (key, _token_of(key))], options.headers
        ),
        dims=dims or made.dims,
        keys=sets if len(sets) > 1 else (),
    )


def find_keys(options: RemoteOptions, environ: Mapping[str, str]) -> list[str]:
    """Every key there is, the configured one first, each once."""
    configured = options.api_key.strip()
    if configured in (
        KEY,
        "GOOGLE_API_KEY",
    ):  # OpenClaw takes these words for the variable of that name
        configured = environ.get(configured, "").strip()
    found = [
        configured,
        *re.split(r"[\s,;]+", environ.get("GEMINI_API_KEYS", "")),
        environ.get(KEY, ""),
    ]
    found += [environ[name] for name in sorted(environ) if name.startswith("GEMINI_API_KEY_")]
    found.append(environ.get("GOOGLE_API_KEY", ""))
    keys = list(dict.fromkeys(key.strip() for key in found if key.strip()))
    return [key for key in keys if key.isascii() and key.isprintable()] or keys


def wire(model: str, dims: int, text_tokens: int) -> Wire:
    """Gemini's language."""
    path = f"/models/{quote(model, safe='')}"
    size: dict[str, object] = {"outputDimensionality": dims} if dims else {}
    is_second = model.startswith(SECOND)

    def one(text: str, is_query: bool) -> dict[str, object]:
        if is_second:
            return {"content": {"parts": [{"text": PROMPTS[not is_query] + text}]}, **size}
        task = "RETRIEVAL_QUERY" if is_query else "RETRIEVAL_DOCUMENT"
        return {"content": {"parts": [{"text": text}]}, "taskType": task, **size}

    def request(texts: Sequence[str], is_query: bool) -> tuple[str, bytes]:
        if is_query and len(texts) == 1:
            return f"{path}:embedContent", as_json(one(texts[0], True))
        rows = [{"model": f"models/{model}", **one(text, is_query)} for text in texts]
        return f"{path}:batchEmbedContents", as_json({"requests": rows})

    return Wire(request, parse, Limits(TEXTS, 0, text_tokens))


class _Row(TypedDict, total=False):
    values: Numbers


class _Answer(Shape, total=False):
    embeddings: list[_Row]
    embedding: _Row


def parse(body: bytes, expected: int) -> list[Sequence[float]]:
    """The vectors of one text or of many."""
    answer = load(body, _Answer)
    rows = answer.get("embeddings", [answer["embedding"]] if "embedding" in answer else None)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("the answer has no list of vectors")
    return check_vectors([row.get("values") for row in rows], expected)


def _chosen_dims(model: str, dims: int) -> int:
    if not model.startswith(SECOND):
        return dims
    if dims and dims not in SECOND_DIMS:
        sizes = ", ".join(map(str, SECOND_DIMS))
        key = "memorySearch.outputDimensionality"
        raise ConfigError(
            f"{key} is {dims}, but {model} gives {sizes}.", key=key, hint="Choose one of them."
        )
    return dims or SECOND_DIMS[0]


def _base_of(configured: str) -> str:
    """An address for OpenAI's clients is made one for Gemini's own language; the bare host gets its
    version.
    """
    base_url = configured.strip().split("/openai", 1)[0].rstrip("/")
    return BASE_URL if base_url in ("", HOST) else base_url


def _auth(key: str) -> dict[str, str]:
    token = _token_of(key)
    return bearer(token) if token else {"x-goog-api-key": key}


def _token_of(key: str) -> str:
    """The token of a key that is a JSON object with one, as some logins leave it."""
    if not key.startswith("{"):
        return ""

    try:
        token = json.loads(key).get("token")
    except (ValueError, RecursionError):
        return ""
    return token if isinstance(token, str) else ""
