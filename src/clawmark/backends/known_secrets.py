"""The configured keys, which must not appear in notes, in indexed transcripts or in logs."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping

from clawmark.config.schema import Remote
from clawmark.embed.services.settings import filled, filled_headers
from clawmark.model.errors import ConfigError
from clawmark.model.providers import secret_variables
from clawmark.net.headers import secrets_of


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
    names = secret_variables()
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
            secrets += secrets_of([filled(key, "apiKey", environ)], {})
        with contextlib.suppress(ConfigError):
            secrets += secrets_of([], filled_headers(headers, environ))
    return tuple(dict.fromkeys(secrets))
