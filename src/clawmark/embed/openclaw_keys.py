"""The facts that releases of OpenClaw hash for a provider where they differ from ours.

An import compares these hashes with the keys in OpenClaw's database, to find the vectors that the
configured provider would make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from clawmark.embed.services.wire import RemoteOptions
from clawmark.model.providers import embedding_facts
from clawmark.net.headers import JSON_TYPE, join_headers

Facts = dict[str, object]


def openai_facts(options: RemoteOptions, model: str) -> tuple[Facts, ...]:
    """Return the facts of `openai` in 2026.3 and 2026.9; both keep a trailing slash."""
    base_url = options.base_url.strip() or embedding_facts("openai").base_url
    both: Facts = {"provider": "openai", "baseUrl": base_url, "model": model}
    found: list[Facts] = []
    if not options.dims and not options.document_input_type:  # 2026.3 has neither
        found.append({**both, "headers": _pairs({**JSON_TYPE, **options.headers}, "authorization")})
    headers = join_headers(JSON_TYPE, options.headers)
    left_out = ["authorization", "x-api-key", "api-key"]
    if (urlsplit(base_url).hostname or "").rstrip(".").lower() == "api.openai.com":
        headers = join_headers(headers, {"originator": "openclaw"})
        left_out += ["version", "user-agent"]
    if options.dims:
        both["outputDimensionality"] = options.dims
    if options.document_input_type:
        both["documentInputType"] = options.document_input_type
    found.append({**both, "headers": _pairs(headers, *left_out)})
    return tuple(found)


def compatible_facts(options: RemoteOptions, model: str, base_url: str) -> tuple[Facts, ...]:
    """Return the facts of `openai-compatible` in 2026.9; it has no trailing slash."""
    both: Facts = {"provider": "openai-compatible", "baseUrl": base_url, "model": model}
    if options.dims:
        both["dimensions"] = options.dims
    headers = {"accept": "application/json", "content-type": "application/json"}
    headers |= {
        name.strip().lower(): value
        for name, value in options.headers.items()
        if name.strip() and value
    }
    shown = {name: value for name, value in headers.items() if not _is_secret(name)}
    return tuple({**both, **types, "headers": shown} for types in _input_types(options))


def _input_types(options: RemoteOptions) -> Iterator[dict[str, str]]:
    """Yield every way to configure these input types: OpenClaw also has `inputType` for both."""
    query, document = options.query_input_type, options.document_input_type
    yield {
        name: value
        for name, value in (("queryInputType", query), ("documentInputType", document))
        if value
    }
    if query and document:
        if query == document:
            yield {"inputType": query}
        yield {"inputType": document, "queryInputType": query}
        yield {"inputType": query, "documentInputType": document}


def _pairs(headers: Mapping[str, str], *left_out: str) -> list[list[str]]:
    pairs = [[name, value] for name, value in headers.items() if name.lower() not in left_out]
    return sorted(pairs, key=lambda pair: (pair[0].lower(), pair[0]))


def _is_secret(name: str) -> bool:
    return name in ("authorization", "proxy-authorization") or any(
        word in name for word in ("api-key", "token", "secret")
    )
