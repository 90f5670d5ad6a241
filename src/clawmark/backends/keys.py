"""Every key that is configured, in the file or in the environment: what must be in no note, transcript index or log."""

from __future__ import annotations

import os
from collections.abc import Mapping

from clawmark.config.load import fill_in
from clawmark.embed.choose import LADDER
from clawmark.embed.wire import secrets_of
from clawmark.errors import ConfigError

MODEL_KEYS = ("ANTHROPIC_API_KEY", "CLAWMARK_MODEL_API_KEY")
"""Variables of models that make no vectors."""


def configured_keys(remote: Mapping[str, object], environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The keys, from `memorySearch.remote` and from the variables that providers' keys are in."""
    names = [*(name for ladder in LADDER.values() for name in ladder), *MODEL_KEYS]
    found = [environ.get(name, "") for name in names]
    given = remote.get("apiKey")
    try:
        found.append(fill_in(given, "memorySearch.remote.apiKey", environ) if isinstance(given, str) else "")
    except ConfigError:
        found.append("")  # the variable it names is not set
    headers = remote.get("headers")
    return secrets_of(found, {str(name): str(value) for name, value in headers.items()} if isinstance(headers, dict) else {})
