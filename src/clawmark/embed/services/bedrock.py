"""Amazon Bedrock: `InvokeModel` for the Titan and Cohere families, signed by hand so that no SDK is
needed.

Titan takes one text a request, Cohere 96 and is told what they are. Credentials come from the
environment, or from a profile of the shared credentials file; a Bedrock API key
(AWS_BEARER_TOKEN_BEDROCK, or the configured key) goes before them. Roles, single sign-on and
instance metadata are left to whoever fills these in."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict
from urllib.parse import quote

from clawmark.embed.models import Known, look_up
from clawmark.embed.services.parsing import Numbers, Shape, check_vectors, load
from clawmark.embed.services.sigv4 import Credentials, Scope, sign
from clawmark.embed.services.wire import (
    Limits,
    Provider,
    RemoteOptions,
    Wire,
    as_json,
    facts,
    find_key,
    make_provider,
    pick_base,
    pick_model,
    public_headers,
    secrets_of,
)
from clawmark.model.errors import ConfigError, EmbeddingUnavailable
from clawmark.net.addresses import parse_url

NAME = "bedrock"
MODEL = "amazon.titan-embed-text-v2:0"
REGION = "us-east-1"
KEY = "AWS_BEARER_TOKEN_BEDROCK"
COHERE_TEXTS = 96

_HOST = re.compile(r"https?://bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.", re.IGNORECASE)
_FAMILY = re.compile(
    r"(?:[a-z-]+\.)?(amazon\.titan-embed-(?:text|g1-text)[a-z0-9.-]*|cohere\.embed-[a-z0-9-]+)"
)


def provider(options: RemoteOptions, environ: Mapping[str, str]) -> Provider:
    """Bedrock as configured; raises EmbeddingUnavailable without credentials, ConfigError for a
    model of other families.
    """
    model = pick_model(options, MODEL, "bedrock/", "amazon-bedrock/")
    family = family_of(model)
    region = region_of(options, environ)
    usual = f"https://bedrock-runtime.{region}.amazonaws.com"
    base_url = pick_base(options, usual)
    known = look_up(family)
    key = find_key(options, environ, KEY)
    key_facts = facts(
        NAME,
        model,
        base_url="" if base_url == usual else base_url,
        dims=options.dims,
        headers=public_headers(options.headers) or None,
    )
    language = wire(model, family, options.dims, known)
    made = make_provider(NAME, model, base_url, key, options, wire=language, key_facts=key_facts)
    made = made._replace(dims=options.dims or known.dims, floor=known.floor, ceiling=known.ceiling)
    if key:
        return made
    credentials = need_credentials(environ, model)
    return made._replace(
        secrets=secrets_of([credentials.secret_key, credentials.token], options.headers),
        sign=signer(base_url, made.headers, credentials, Scope(region, "bedrock")),
    )


def family_of(model: str) -> str:
    """The model's own name, without region, version and the rest of an ARN; raises ConfigError for
    other families.
    """
    found = _FAMILY.fullmatch(model.rsplit("/", 1)[-1].lower().split(":", 1)[0])
    if not found:
        raise ConfigError(
            f'memorySearch.model is "{model}"; of Bedrock the embedding models of Titan and '
            f"Cohere are known.",
            key="memorySearch.model",
            hint=f'Set it to "{MODEL}" or to one that starts with cohere.embed, or remove it.',
        )
    return found[1]


def region_of(options: RemoteOptions, environ: Mapping[str, str]) -> str:
    """Where the model runs: the address says it, then the configuration, then the environment."""
    from_url = _HOST.match(options.base_url.strip())
    named = (options.region, environ.get("AWS_REGION", ""), environ.get("AWS_DEFAULT_REGION", ""))
    region = (
        from_url[1].lower()
        if from_url
        else next((name.strip() for name in named if name.strip()), REGION)
    )
    if not re.fullmatch(r"[a-z0-9-]{1,40}", region):  # it becomes part of a host name
        raise ConfigError(
            f'The region "{region}" is no name of a region.',
            hint='Set it to one like "eu-central-1".',
        )
    return region


def need_credentials(environ: Mapping[str, str], model: str) -> Credentials:
    """Who signs: the environment, else the shared credentials file; raises EmbeddingUnavailable."""
    found = Credentials(
        environ.get("AWS_ACCESS_KEY_ID", "").strip(),
        environ.get("AWS_SECRET_ACCESS_KEY", "").strip(),
        environ.get("AWS_SESSION_TOKEN", "").strip(),
    )
    if not (found.access_key and found.secret_key):
        found = read_profile(environ)
    if not (found.access_key and found.secret_key):
        raise EmbeddingUnavailable(
            "No API key found for provider bedrock: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
            "are not set.",
            provider=NAME,
            model=model,
            hint="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a "
            "profile of .aws/credentials in AWS_PROFILE.",
        )
    return found


def read_profile(environ: Mapping[str, str]) -> Credentials:
    """The profile AWS_PROFILE names, or `default`; empty when there is none or the file cannot be
    read.
    """
    import configparser

    home = environ.get("HOME") or os.path.expanduser("~")
    path = environ.get("AWS_SHARED_CREDENTIALS_FILE") or os.path.join(home, ".aws", "credentials")
    name = environ.get("AWS_PROFILE") or environ.get("AWS_DEFAULT_PROFILE") or "default"
    # Sections named [default] are profiles here, not defaults for all others.
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
    """Signs requests below this address that are sent with these headers."""
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


def wire(model: str, family: str, dims: int, known: Known) -> Wire:
    """The language of the model's family."""
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
        # The fourth generation names the ends of a text differently in different places; ours are
        # never too long for it.
        body["embedding_types"] = ["float"]
        if dims:
            body["output_dimension"] = dims
        return body

    def request(texts: Sequence[str], is_query: bool) -> tuple[str, bytes]:
        return path, as_json(cohere(texts, is_query) if is_cohere else titan(texts[0]))

    texts = COHERE_TEXTS if is_cohere else 1
    return Wire(
        request, parse_cohere if is_cohere else parse_titan, Limits(texts, 0, known.text_tokens)
    )


def parse_titan(body: bytes, expected: int) -> list[Sequence[float]]:
    """The one vector of a Titan answer."""
    return check_vectors([load(body).get("embedding")], expected)


class _ByType(TypedDict, total=False):
    float: list[Numbers]


class _Cohere(Shape, total=False):
    embeddings: list[Numbers] | _ByType


def parse_cohere(body: bytes, expected: int) -> list[Sequence[float]]:
    """The vectors of a Cohere answer: a list, or lists by type of number."""
    found = load(body, _Cohere).get("embeddings")
    return check_vectors(found.get("float") if isinstance(found, dict) else found, expected)
