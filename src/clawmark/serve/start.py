"""Start the server from the settings: in this process, or in several that share the port."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import NamedTuple

from clawmark.backends.team.direct import DirectSpaces
from clawmark.composition.serving import (
    choose_embedders,
    open_team_database,
    query_maker,
    serve_options,
)
from clawmark.config.paths import Places
from clawmark.config.schema import Settings
from clawmark.config.schema.serve import ServeOptions
from clawmark.net.server.listening import bind
from clawmark.serve.app import ROUTE_NAMES
from clawmark.serve.database import DatabaseTeam
from clawmark.serve.due_vectors import DueVectors
from clawmark.serve.metrics import Metrics
from clawmark.serve.server import Parts, check_options, serve
from clawmark.serve.workers import Workers
from clawmark.system.shutdown import exit_after_delay, tune_garbage_collection


class Start(NamedTuple):
    """What is served, and what is called when it is."""

    places: Places
    settings: Settings
    changes: dict[str, object]
    """Options of the command line, which replace those of the section `serve`."""
    ready: Callable[[ServeOptions], None]
    """Called by each process with the address it listens on."""


def run_server(start: Start) -> int:
    """Serve until a signal arrives and return the exit code."""
    options = serve_options(start.settings)._replace(**start.changes)  # type: ignore[arg-type]
    check_options(options)
    # Errors of the configuration are found before any process is started.
    open_team_database(start.settings).close()
    metrics = Metrics(ROUTE_NAMES, options.workers)
    with bind(options.host, options.port) as listening:
        bound = options._replace(port=listening.getsockname()[1])

        def work(number: int) -> int:
            return _work(start, bound, metrics, listening)

        return work(0) if bound.workers == 1 else Workers(bound.workers, metrics, work).run()


def _work(start: Start, options: ServeOptions, metrics: Metrics, listening: socket.socket) -> int:
    """Run one process of the server."""
    server = open_team_database(start.settings)
    choice = choose_embedders(start.places, start.settings)
    is_slow = any(not one.traits.instant for one in choice.embedders)

    def spaces_of(caller: str) -> DirectSpaces:
        return DirectSpaces(server, caller, choice, owns_server=False)

    due = DueVectors(server, spaces_of, metrics) if is_slow and options.embed else None
    team = DatabaseTeam(server, choice, due)

    def ready() -> None:
        if due is not None:
            due.start()
        start.ready(options)

    parts = Parts(
        team=team, metrics=metrics, options=options, make_query=query_maker(start.settings)
    )
    tune_garbage_collection()
    try:
        code = asyncio.run(serve(parts, listening, ready))
    finally:
        if due is not None:
            due.stop(options.shutdown_seconds)
        team.close()
    exit_after_delay(code)
    return code
