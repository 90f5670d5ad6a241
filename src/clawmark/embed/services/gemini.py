"""Gemini: `:batchEmbedContents` for passages, `:embedContent` for a query, and several keys.

The first generation of models has `taskType` for queries and passages; the second has no such field
and uses prompts. The second also embeds images and audio files, each together with a label and
without a prompt. Keys are sent in a header, never in the address. When the quota of one key is used
up, the next one is tried: the configured one, GEMINI_API_KEYS (several), GEMINI_API_KEY,
GEMINI_API_KEY_* and GOOGLE_API_KEY."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import TypedDict
from urllib.parse import quote

from clawmark.embed.media_file import MediaFile
from clawmark.embed.services.parsing import Numbers, Shape, check_vectors, load
from clawmark.embed.services.wire import (
    Limits,
    Provider,
    RemoteOptions,
    Wire,
    configure,
    fingerprint_facts,
)
from clawmark.model.errors import ConfigError
from clawmark.net.headers import (
    JSON_TYPE,
    as_json,
    bearer,
    join_headers,
    public_headers,
    secrets_of,
)

HOST = "https://generativelanguage.googleapis.com"
SECOND = "gemini-embedding-2"
SECOND_DIMS = (3072, 1536, 768)
PROMPTS = ("task: search result | query: ", "title: none | text: ")
"""What the second generation expects before a query and before a passage."""


def provider(options: RemoteOptions, environ: Mapping[str, str]) -> Provider:
    """Return Gemini as configured; raise EmbeddingUnavailable without a key, ConfigError for a size
    that the model does not have.
    """
    keys = _find_keys(options, environ)
    chosen = options._replace(base_url=_base_url(options.base_url), api_key=keys[0] if keys else "")
    service = configure("gemini", chosen, environ, "models/", "gemini/", "google/")
    dims = _chosen_dims(service.model, options.dims)
    key_facts = fingerprint_facts(
        service.name,
        service.model,
        base_url=service.base_url,
        dims=dims,
        headers=public_headers(options.headers),
        prompts=list(PROMPTS) if service.model.startswith(SECOND) else None,
    )
    made = service.provider(wire(service.model, dims, service.limits()), key_facts)
    sets = tuple(join_headers(JSON_TYPE, _auth(key), options.headers) for key in keys)
    return made._replace(
        headers=sets[0] if sets else made.headers,
        secrets=secrets_of(
            [secret for key in keys for secret in (key, _token_of(key))], options.headers
        ),
        dims=dims or made.dims,
        keys=sets if len(sets) > 1 else (),
    )


def _find_keys(options: RemoteOptions, environ: Mapping[str, str]) -> list[str]:
    """Return every key once, the configured one first."""
    configured = options.api_key.strip()
    if configured in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):  # OpenClaw reads them as variables
        configured = environ.get(configured, "").strip()
    found = [configured, *re.split(r"[\s,;]+", environ.get("GEMINI_API_KEYS", ""))]
    found.append(environ.get("GEMINI_API_KEY", ""))
    found += [environ[name] for name in sorted(environ) if name.startswith("GEMINI_API_KEY_")]
    found.append(environ.get("GOOGLE_API_KEY", ""))
    keys = list(dict.fromkeys(key.strip() for key in found if key.strip()))
    return [key for key in keys if key.isascii() and key.isprintable()] or keys


def wire(model: str, dims: int, limits: Limits) -> Wire:
    """Return Gemini's wire format."""
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

    def media_request(files: Sequence[MediaFile]) -> tuple[str, bytes]:
        rows = [
            {"model": f"models/{model}", "content": {"parts": _media_parts(file)}, **size}
            for file in files
        ]
        return f"{path}:batchEmbedContents", as_json({"requests": rows})

    return Wire(
        request=request, parse=parse, limits=limits, media=media_request if is_second else None
    )


def _media_parts(file: MediaFile) -> list[dict[str, object]]:
    data = b64encode(file.data).decode("ascii")
    return [{"text": file.label}, {"inlineData": {"mimeType": file.mime, "data": data}}]


class _Row(TypedDict, total=False):
    values: Numbers


class _Answer(Shape, total=False):
    embeddings: list[_Row]
    embedding: _Row


def parse(body: bytes, expected: int) -> list[Sequence[float]]:
    """Return the vectors of one text or of many."""
    answer = load(body, _Answer)
    rows = answer.get("embeddings", [answer["embedding"]] if "embedding" in answer else None)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("the response has no list of vectors")
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


def _base_url(configured: str) -> str:
    """Return the address without `/openai`; empty for the usual one, with or without a version."""
    base_url = configured.strip().split("/openai", 1)[0].rstrip("/")
    return "" if base_url == HOST else base_url


def _auth(key: str) -> dict[str, str]:
    token = _token_of(key)
    return bearer(token) if token else {"x-goog-api-key": key}


def _token_of(key: str) -> str:
    """Return the token of a key that is a JSON object, as some logins store it."""
    if not key.startswith("{"):
        return ""

    try:
        token = json.loads(key).get("token")
    except (ValueError, RecursionError):
        return ""
    return token if isinstance(token, str) else ""
