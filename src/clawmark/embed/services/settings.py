"""Read `memorySearch.remote.*` into the options of a remote provider.

References such as `${MY_KEY}` are filled in here, when the value is used.
"""

from __future__ import annotations

from collections.abc import Mapping

from clawmark.config.load import fill_in
from clawmark.config.urls import problem_with
from clawmark.embed.batch.run import BatchOptions
from clawmark.embed.services.wire import RemoteOptions
from clawmark.model.errors import ConfigError


def remote_options(
    model: str, dims: int, remote: Mapping[str, object], environ: Mapping[str, str]
) -> RemoteOptions:
    """Return the options; raise ConfigError for a missing variable or a refused address."""

    def text(name: str) -> str:
        return filled(remote.get(name), f"memorySearch.remote.{name}", environ)

    return RemoteOptions(
        model=model,
        base_url=checked_address(text("baseUrl"), "memorySearch.remote.baseUrl"),
        api_key=text("apiKey"),
        headers=filled_headers(remote, environ),
        dims=dims,
        query_input_type=text("queryInputType"),
        document_input_type=text("documentInputType"),
        region=text("region"),
    )


def filled_headers(remote: Mapping[str, object], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the configured headers with their references filled in."""
    headers = remote.get("headers")
    if not isinstance(headers, dict):
        return {}
    return {
        str(name): fill_in(str(text), f"memorySearch.remote.headers.{name}", environ)
        for name, text in headers.items()
    }


def filled(value: object, key: str, environ: Mapping[str, str]) -> str:
    """Return the text of a setting with its references filled in."""
    if isinstance(value, Mapping):  # OpenClaw's reference to a secret: {source: "env", id: "NAME"}
        return environ.get(str(value.get("id", "")), "")
    return fill_in(str(value), key, environ) if value else ""


def checked_address(url: str, key: str) -> str:
    """Return an address whose references were filled in; raise ConfigError when it is refused."""
    problem = problem_with(url.strip()) if url else ""
    if problem:
        raise ConfigError(f"{key} is refused: {problem}.", key=key)
    return url


def batch_options(remote: Mapping[str, object]) -> BatchOptions:
    """Return whether and how batch jobs are used."""

    def number(name: str, default: int) -> int:
        value = remote.get(f"batch.{name}")
        return value if isinstance(value, int) else default

    return BatchOptions(
        enabled=bool(remote.get("batch.enabled", False)),
        wait=bool(remote.get("batch.wait", True)),
        concurrency=number("concurrency", 2),
        poll_ms=number("pollIntervalMs", 2000),
        timeout_minutes=number("timeoutMinutes", 60),
    )
