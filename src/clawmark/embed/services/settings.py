"""Turn `memorySearch.remote` into the options that the provider modules take.

References such as `${MY_KEY}` are filled in here, when the value is used and not before.
"""

from __future__ import annotations

from collections.abc import Mapping

from clawmark.config.check import fill_in
from clawmark.config.schema import Remote, RemoteBatch
from clawmark.config.urls import problem_with
from clawmark.embed.batch.run import BatchOptions
from clawmark.embed.services.wire import RemoteOptions
from clawmark.model.errors import ConfigError

_REMOTE = "memorySearch.remote."


def remote_options(
    model: str, dims: int, remote: Remote, environ: Mapping[str, str]
) -> RemoteOptions:
    """What the provider modules take; raises ConfigError when a referenced variable is not set or
    the address is refused.
    """

    def filled(text: str, name: str) -> str:
        return fill_in(text, _REMOTE + name, environ)

    return RemoteOptions(
        model=model,
        base_url=_address(filled(remote.base_url, "baseUrl")),
        api_key=filled_key(remote.api_key, environ),
        headers=filled_headers(remote.headers, environ),
        dims=dims,
        query_input_type=filled(remote.query_input_type, "queryInputType"),
        document_input_type=filled(remote.document_input_type, "documentInputType"),
        region=filled(remote.region, "region"),
    )


def filled_key(value: object, environ: Mapping[str, str]) -> str:
    """A key that is given as text, or as OpenClaw's reference `{source: "env", id: "NAME"}`."""
    if isinstance(value, Mapping):
        return environ.get(str(value.get("id", "")), "")
    return fill_in(str(value or ""), f"{_REMOTE}apiKey", environ)


def filled_headers(headers: object, environ: Mapping[str, str]) -> dict[str, str]:
    """The headers as they are sent: a service may want its key in one of its own."""
    if not isinstance(headers, Mapping):
        return {}
    return {
        str(name): fill_in(str(text), f"{_REMOTE}headers.{name}", environ)
        for name, text in headers.items()
    }


def _address(url: str) -> str:
    """Check an address again: `${NAME}` in it was not filled in when the file was read."""
    problem = problem_with(url.strip()) if url else ""
    if problem:
        raise ConfigError(f"{_REMOTE}baseUrl is refused: {problem}.", key=f"{_REMOTE}baseUrl")
    return url


def batch_options(batch: RemoteBatch) -> BatchOptions:
    """How and whether batch jobs are used."""
    return BatchOptions(
        enabled=batch.enabled,
        wait=batch.wait,
        concurrency=batch.concurrency,
        poll_ms=batch.poll_interval_ms,
        timeout_minutes=batch.timeout_minutes,
    )
