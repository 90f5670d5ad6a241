"""Amazon Bedrock: `InvokeModel` for the Titan and Cohere families, signed without an SDK.

Titan takes one text per request, Cohere 96. A Bedrock API key (AWS_BEARER_TOKEN_BEDROCK, or the
configured key) is preferred; otherwise credentials come from the environment or from a profile of
the shared credentials file. Roles, single sign-on and instance metadata are not supported."""

from __future__ import annotations

import configparser
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict
from urllib.parse import quote

from clawmark.embed.models import look_up
from clawmark.embed.services.parsing import Numbers, Shape, check_vectors, load
from clawmark.embed.services.sigv4 import Credentials, Scope, sign
from clawmark.embed.services.wire import (
    Limits,
    Provider,
    RemoteOptions,
    Wire,
    configure,
    fingerprint_facts,
)
from clawmark.model.errors import ConfigError, EmbeddingUnavailable
from clawmark.net.addresses import parse_url
from clawmark.net.headers import as_json, public_headers, secrets_of

REGION = "us-east-1"

_HOST = re.compile(r"https?://bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.", re.IGNORECASE)
_FAMILY = re.compile(
    r"(?:[a-z-]+\.)?(amazon\.titan-embed-(?:text|g1-text)[a-z0-9.-]*|cohere\.embed-[a-z0-9-]+)"
)


def provider(options: RemoteOptions, environ: Mapping[str, str]) -> Provider:
    """Return Bedrock as configured; raise EmbeddingUnavailable without credentials, ConfigError for
    a model of another family.
    """
    region = _region(options, environ)
    usual = f"https://bedrock-runtime.{region}.amazonaws.com"
    chosen = options._replace(base_url=options.base_url.strip() or usual)
    service = configure("bedrock", chosen, environ, "amazon-bedrock/")
    family = _family(service.model)
    known = look_up(family)
    key_facts = fingerprint_facts(
        service.name,
        service.model,
        base_url="" if service.base_url == usual else service.base_url,
        dims=options.dims,
        headers=public_headers(options.headers) or None,
    )
    language = wire(service.model, family, options.dims, service.limits(known.text_tokens))
    made = service.provider(language, key_facts)
    made = made._replace(dims=options.dims or known.dims, floor=known.floor, ceiling=known.ceiling)
    if service.key:
        return made
    credentials = _find_credentials(environ, service.model)
    return made._replace(
        secrets=secrets_of([credentials.secret_key, credentials.token], options.headers),
        sign=signer(service.base_url, made.headers, credentials, Scope(region, "bedrock")),
    )


def _family(model: str) -> str:
    """Return the model's own name, without region, version and the rest of an ARN."""
    found = _FAMILY.fullmatch(model.rsplit("/", 1)[-1].lower().split(":", 1)[0])
    if not found:
        raise ConfigError(
            f'memorySearch.model is "{model}"; of Bedrock the embedding models of Titan and '
            f"Cohere are supported.",
            key="memorySearch.model",
            hint='Set it to "amazon.titan-embed-text-v2:0" or to one that starts with '
            "cohere.embed, or remove it.",
        )
    return found[1]


def _region(options: RemoteOptions, environ: Mapping[str, str]) -> str:
    """Return the region of the address, else of the configuration, else of the environment."""
    from_url = _HOST.match(options.base_url.strip())
    named = (options.region, environ.get("AWS_REGION", ""), environ.get("AWS_DEFAULT_REGION", ""))
    region = (
        from_url[1].lower()
        if from_url
        else next((name.strip() for name in named if name.strip()), REGION)
    )
    if not re.fullmatch(r"[a-z0-9-]{1,40}", region):  # it becomes part of a host name
        raise ConfigError(
            f'"{region}" is not the name of a region.',
            hint='Set it to one like "eu-central-1".',
        )
    return region


def _find_credentials(environ: Mapping[str, str], model: str) -> Credentials:
    """Return the credentials of the environment, else of the shared credentials file."""
    found = Credentials(
        environ.get("AWS_ACCESS_KEY_ID", "").strip(),
        environ.get("AWS_SECRET_ACCESS_KEY", "").strip(),
        environ.get("AWS_SESSION_TOKEN", "").strip(),
    )
    if not (found.access_key and found.secret_key):
        found = _read_profile(environ)
    if not (found.access_key and found.secret_key):
        raise EmbeddingUnavailable(
            "No API key found for provider bedrock: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
            "are not set.",
            provider="bedrock",
            model=model,
            hint="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a "
            "profile of .aws/credentials in AWS_PROFILE.",
        )
    return found


def _read_profile(environ: Mapping[str, str]) -> Credentials:
    """Return the profile AWS_PROFILE or `default`; empty when it cannot be read."""
    home = environ.get("HOME") or os.path.expanduser("~")
    path = environ.get("AWS_SHARED_CREDENTIALS_FILE") or os.path.join(home, ".aws", "credentials")
    name = environ.get("AWS_PROFILE") or environ.get("AWS_DEFAULT_PROFILE") or "default"
    # A section [default] is a profile here, not a default for all others.
    parser = configparser.RawConfigParser(default_section="", strict=False)
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
        section = dict(parser.items(name))
    except (OSError, ValueError, configparser.Error):
        return Credentials("", "")
    names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    return Credentials(*[section.get(name, "").strip() for name in names])


def signer(
    base_url: str,
    headers: Mapping[str, str],
    credentials: Credentials,
    scope: Scope,
    clock: Callable[[], float] = time.time,
) -> Callable[[str, str, bytes], dict[str, str]]:
    """Return a function that signs requests below this address, sent with these headers."""
    named = {
        name: value
        for name, value in headers.items()
        if name.lower().startswith(("content-type", "x-amz-"))
    }

    def signed(method: str, path: str, body: bytes) -> dict[str, str]:
        endpoint = parse_url(base_url)
        return sign(
            method,
            endpoint.path + path,
            body,
            headers={"host": endpoint.authority, **named},
            credentials=credentials,
            scope=scope,
            now=clock(),
            query=endpoint.query,
        )

    return signed


def wire(model: str, family: str, dims: int, limits: Limits) -> Wire:
    """Return the wire format of the model's family."""
    path = f"/model/{quote(model, safe='')}/invoke"
    is_cohere = family.startswith("cohere.")
    is_fourth = family.startswith("cohere.embed-v4")

    def titan(text: str) -> dict[str, object]:
        body: dict[str, object] = {"inputText": text}
        if "-v2" in family:
            body.update({"dimensions": dims} if dims else {}, normalize=True)
        return body

    def cohere(texts: Sequence[str], is_query: bool) -> dict[str, object]:
        body: dict[str, object] = {
            "texts": list(texts),
            "input_type": "search_query" if is_query else "search_document",
        }
        if not is_fourth:
            body["truncate"] = "END"
            return body
        body["embedding_types"] = ["float"]
        if dims:
            body["output_dimension"] = dims
        return body

    def request(texts: Sequence[str], is_query: bool) -> tuple[str, bytes]:
        return path, as_json(cohere(texts, is_query) if is_cohere else titan(texts[0]))

    if is_cohere:
        return Wire(request, parse_cohere, limits)
    return Wire(request, parse_titan, limits._replace(texts=1))


def parse_titan(body: bytes, expected: int) -> list[Sequence[float]]:
    """Return the one vector of a Titan response."""
    return check_vectors([load(body).get("embedding")], expected)


class _ByType(TypedDict, total=False):
    float: list[Numbers]


class _Cohere(Shape, total=False):
    embeddings: list[Numbers] | _ByType


def parse_cohere(body: bytes, expected: int) -> list[Sequence[float]]:
    """Return the vectors of a Cohere response: a list, or lists by type of number."""
    found = load(body, _Cohere).get("embeddings")
    return check_vectors(found.get("float") if isinstance(found, dict) else found, expected)
