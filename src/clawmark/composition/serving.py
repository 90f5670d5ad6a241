"""What `clawmark serve` needs of the settings: its database, its embedders, its search options."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, cast

from clawmark.composition import _choose, make_query
from clawmark.config.check import fill_in
from clawmark.config.paths import Places
from clawmark.config.schema import Settings
from clawmark.config.schema.serve import ServeOptions
from clawmark.config.urls import problem_with
from clawmark.embed.base import Choice
from clawmark.embed.services.settings import filled
from clawmark.model.errors import ConfigError
from clawmark.model.values import Query
from clawmark.store.postgres.servers import Server
from clawmark.text.filters import make_filters


def open_team_database(settings: Settings, environ: Mapping[str, str] = os.environ) -> Server:
    """Return the database of the team's memory, without connecting to it."""
    key = "team.uri" if settings.team.uri else "memorySearch.store.uri"
    given = settings.team.uri or settings.memory_search.store.uri
    uri = filled(given, key, environ).strip()
    if not uri:
        raise ConfigError(
            "The database of the team's memory is not configured.",
            key="memorySearch.store.uri",
            hint="Set memorySearch.store.uri to postgresql://USER:PASSWORD@HOST/DATABASE.",
        )
    if uri.startswith(("https://", "http://")):
        raise ConfigError(
            f"{key} names a server, and `clawmark serve` needs its database.",
            key=key,
            hint=f"Set {key} to postgresql://USER:PASSWORD@HOST/DATABASE.",
        )
    serve = settings.serve
    return Server(uri, pool_size=serve.connections, query_seconds=serve.request_seconds)


def serve_options(settings: Settings, environ: Mapping[str, str] = os.environ) -> ServeOptions:
    """Return the section `serve`, with `${NAME}` in its address filled in."""
    options = settings.serve
    url = fill_in(options.public_url, "serve.publicUrl", environ).strip().rstrip("/")
    problem = problem_with(url) if url else ""
    if problem:
        raise ConfigError(
            f"serve.publicUrl is refused: {problem}.",
            key="serve.publicUrl",
            hint="Write it as https://memory.example.com.",
        )
    return options._replace(public_url=url)


def choose_embedders(places: Places, settings: Settings) -> Choice:
    """Return the embedders for the passages of spaces, as `memorySearch` configures them."""
    choice, _ = _choose(places, settings, cast("Any", _NoIndex()), None, None)
    return choice


def query_maker(settings: Settings) -> Callable[..., Query]:
    """Return what completes a search with the configured options; days are in UTC, as in logs."""
    options = settings.memory_search.query

    def today() -> str:
        return datetime.now(UTC).date().isoformat()

    def complete(
        text: str,
        *,
        max_results: int | None = None,
        min_score: float | None = None,
        since: str | None = None,
        until: str | None = None,
        path: str | None = None,
        explain: bool = False,
    ) -> Query:
        filters = make_filters(since=since, until=until, path=path, source=None, today=today)
        query = make_query(options, text, max_results, min_score, today)
        return query._replace(filters=filters, explain=explain)

    return complete


class _NoIndex:
    """Stands for an index that knows no vectors: the server has none of its own."""

    @contextmanager
    def snapshot(self) -> Iterator[_NoIndex]:
        yield self

    def spaces(self) -> tuple[()]:
        return ()

    def cached_dims(self, *names: str) -> int:
        return 0
