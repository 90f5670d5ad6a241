"""Turn `memorySearch.remote` into the options that the provider modules take.

References such as `${MY_KEY}` are filled in here, when the value is used.
"""

from __future__ import annotations

from collections.abc import Mapping

from clawmark.config.check import fill_in
from clawmark.config.schema import Remote
from clawmark.config.urls import problem_with
from clawmark.embed.services.wire import RemoteOptions
from clawmark.model.errors import ConfigError

_REMOTE = "memorySearch.remote."


def remote_options(
    model: str, dims: int, remote: Remote, environ: Mapping[str, str]
) -> RemoteOptions:
    """Return the options; raise ConfigError for a missing variable or a refused address."""

    def text(value: object, name: str) -> str:
        return filled(value, _REMOTE + name, environ)

    return RemoteOptions(
        model=model,
        base_url=checked_address(text(remote.base_url, "baseUrl"), f"{_REMOTE}baseUrl"),
        api_key=text(remote.api_key, "apiKey"),
        headers=filled_headers(remote.headers, environ),
        dims=dims,
        query_input_type=text(remote.query_input_type, "queryInputType"),
        document_input_type=text(remote.document_input_type, "documentInputType"),
        region=text(remote.region, "region"),
    )


def filled(value: object, key: str, environ: Mapping[str, str]) -> str:
    """Return the text of a setting with its references filled in."""
    if isinstance(value, Mapping):  # OpenClaw's reference to a secret: {source: "env", id: "NAME"}
        return environ.get(str(value.get("id", "")), "")
    return fill_in(str(value), key, environ) if value else ""


def filled_headers(headers: object, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the configured headers with their references filled in."""
    if not isinstance(headers, Mapping):
        return {}
    return {
        str(name): fill_in(str(text), f"{_REMOTE}headers.{name}", environ)
        for name, text in headers.items()
    }


def checked_address(url: str, key: str) -> str:
    """Return an address whose references were filled in; raise ConfigError when it is refused."""
    problem = problem_with(url.strip()) if url else ""
    if problem:
        raise ConfigError(f"{key} is refused: {problem}.", key=key)
    return url
