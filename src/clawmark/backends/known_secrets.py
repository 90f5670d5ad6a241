"""Every key that is configured, in the file or in the environment: what must be in no note,
transcript index or log.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping

from clawmark.config.schema import Remote
from clawmark.embed.choose import LADDER
from clawmark.embed.services.settings import filled_headers, filled_key
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
"""Variables of models that make no vectors, and of providers that `auto` does not look for."""


def configured_keys(
    remote: Remote,
    environ: Mapping[str, str] = os.environ,
    entries: Mapping[str, Mapping[str, object]] | None = None,
    *,
    rerank_key: object = "",
) -> tuple[str, ...]:
    """The keys, from `memorySearch.remote`, from `models.providers`, of the reranker, and from the
    providers' variables.
    """
    names = {*(name for ladder in LADDER.values() for name in ladder), *OTHER_KEYS}
    held = [
        value
        for name, value in environ.items()
        if name in names or name.startswith("GEMINI_API_KEY_")
    ]
    found = [
        key for value in held for key in re.split(r"[\s,;]+", value)
    ]  # Gemini's variable may hold several
    secrets = list(secrets_of(found, {}))
    others = ((entry.get("apiKey"), entry.get("headers")) for entry in (entries or {}).values())
    for key, headers in ((remote.api_key, remote.headers), (rerank_key, None), *others):
        # A reference that leads nowhere hides nothing.
        with contextlib.suppress(ConfigError):
            secrets += secrets_of([filled_key(key, environ)], {})
        with contextlib.suppress(ConfigError):
            secrets += secrets_of([], filled_headers(headers, environ))
    return tuple(dict.fromkeys(secrets))
