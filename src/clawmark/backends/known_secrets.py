"""The configured keys, which must not appear in notes, in indexed transcripts or in logs."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping

from clawmark.embed.choose import LADDER
from clawmark.embed.services.settings import filled_headers, remote_options
from clawmark.embed.services.wire import secrets_of
from clawmark.model.errors import ConfigError

OTHER_KEYS = (
    "ANTHROPIC_API_KEY",
    "CLAWMARK_MODEL_API_KEY",
    "OLLAMA_API_KEY",
    "DEEPINFRA_API_KEY",
    "LMSTUDIO_API_KEY",
    "VLLM_API_KEY",
    "LLAMA_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "COHERE_API_KEY",
    "CO_API_KEY",
    "JINA_API_KEY",
)
"""Variables of chat models, and of embedding providers that `auto` does not look for."""


def configured_keys(
    remote: Mapping[str, object],
    environ: Mapping[str, str] = os.environ,
    entries: Mapping[str, Mapping[str, object]] | None = None,
    *,
    rerank_key: object = "",
) -> tuple[str, ...]:
    """Return the keys of `memorySearch.remote`, of `models.providers` (`entries`), of the reranker
    and of the providers' environment variables.
    """
    names = {*(name for ladder in LADDER.values() for name in ladder), *OTHER_KEYS}
    values = [
        value
        for name, value in environ.items()
        if name in names or name.startswith("GEMINI_API_KEY_")
    ]
    # Gemini's variable may hold several keys.
    secrets = list(secrets_of([key for value in values for key in re.split(r"[\s,;]+", value)], {}))
    for place in (remote, {"apiKey": rerank_key}, *(entries or {}).values()):
        # A reference to a variable or file that does not exist holds no secret.
        with contextlib.suppress(ConfigError):
            options = remote_options("", 0, {"apiKey": place.get("apiKey")}, environ)
            secrets += secrets_of([options.api_key], {})
        with contextlib.suppress(ConfigError):
            secrets += secrets_of([], filled_headers(place, environ))
    return tuple(dict.fromkeys(secrets))
