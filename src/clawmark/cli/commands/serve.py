"""`clawmark serve`: serve a team's memory over REST, MCP and a web page."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser, Namespace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from clawmark.cli.arguments import count, some_text
from clawmark.cli.output import emit, note
from clawmark.cli.output import warn as print_warnings
from clawmark.config.load import load
from clawmark.config.paths import resolve_places
from clawmark.model.errors import ClawmarkError
from clawmark.net.server.listening import bind
from clawmark.system.shutdown import exit_after_delay, tune_garbage_collection

if TYPE_CHECKING:
    import socket

    from clawmark.config.paths import Places
    from clawmark.config.schema import Settings
    from clawmark.config.schema.serve import ServeOptions

EXAMPLES = """\
examples:
  clawmark serve                                # http://127.0.0.1:8379
  clawmark serve --port 9000 --workers 4
  curl -H "Authorization: Bearer $CLAWMARK_TOKEN" http://127.0.0.1:8379/v1/spaces

The database is `team.uri` or `memorySearch.store.uri`; the section `serve` has the
other settings. `clawmark token create` makes the tokens that clients send. TLS is
the work of a reverse proxy: docs/how-to/serve.md has examples for Caddy and nginx."""
NEEDED = ("starlette", "uvicorn", "mcp", "jinja2", "markdown_it", "psycopg", "psycopg_pool")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--host", type=some_text, metavar="IP", help="the address to listen on (serve.host)"
    )
    parser.add_argument(
        "--port",
        type=count(0, 65535),
        metavar="N",
        help="the port (serve.port, 8379 by default; 0 chooses a free one)",
    )
    parser.add_argument(
        "--workers",
        type=count(1, 64),
        metavar="N",
        help="how many processes share the port (serve.workers)",
    )


def run(args: Namespace) -> int:
    _require_extra()
    # Imported late: optional extras.
    from clawmark.composition.serving import open_team_database, serve_options
    from clawmark.serve.app import ROUTE_NAMES
    from clawmark.serve.metrics import Metrics
    from clawmark.serve.server import check_options
    from clawmark.serve.workers import Workers

    places = resolve_places(args.workspace, args.agent, args.config, args.state_dir)
    loaded = load(places)
    print_warnings(loaded.warnings)
    options = _with_flags(serve_options(loaded.settings), args)
    check_options(options)
    # Errors of the configuration are found before any process is started.
    open_team_database(loaded.settings).close()
    metrics = Metrics(ROUTE_NAMES, options.workers)
    with bind(options.host, options.port) as listening:
        bound = options._replace(port=listening.getsockname()[1])

        def work(number: int) -> int:
            return _work(places, loaded.settings, bound, metrics, listening, args.json)

        return work(0) if bound.workers == 1 else Workers(bound.workers, metrics, work).run()


def _work(
    places: Places,
    settings: Settings,
    options: ServeOptions,
    metrics: object,
    listening: socket.socket,
    as_json: bool,
) -> int:
    # Imported late: optional extras, after the workers have been forked.
    from clawmark.backends.team.direct import DirectSpaces
    from clawmark.composition.serving import choose_embedders, open_team_database, query_maker
    from clawmark.serve.database import DatabaseTeam
    from clawmark.serve.due_vectors import DueVectors
    from clawmark.serve.metrics import Metrics
    from clawmark.serve.server import Parts, serve

    assert isinstance(metrics, Metrics)
    server = open_team_database(settings)
    choice = choose_embedders(places, settings)
    is_slow = any(not one.traits.instant for one in choice.embedders)
    due = (
        DueVectors(
            server, lambda name: DirectSpaces(server, name, choice, owns_server=False), metrics
        )
        if is_slow and options.embed
        else None
    )
    team = DatabaseTeam(server, choice, due)

    def ready() -> None:
        if due is not None:
            due.start()
        _say_ready(options, as_json)

    parts = Parts(team=team, metrics=metrics, options=options, make_query=query_maker(settings))
    tune_garbage_collection()
    try:
        code: int = asyncio.run(serve(parts, listening, ready))
    finally:
        if due is not None:
            due.stop(options.shutdown_seconds)
        team.close()
    exit_after_delay(code)
    return code


def _say_ready(options: ServeOptions, as_json: bool) -> None:
    host = f"[{options.host}]" if ":" in options.host else options.host
    address = f"http://{host}:{options.port}"
    if as_json:
        emit({"address": address, "publicUrl": options.public_url})
    else:
        note(f"clawmark: serving the team's memory at {address}")


def _with_flags(options: ServeOptions, args: Namespace) -> ServeOptions:
    given = {
        "host": "127.0.0.1" if args.host == "localhost" else args.host,
        "port": args.port,
        "workers": args.workers,
    }
    return options._replace(**{name: value for name, value in given.items() if value is not None})


def _require_extra() -> None:
    if any(find_spec(name) is None for name in NEEDED):
        raise ClawmarkError(
            "The server of a team's memory needs the extra `serve`.",
            hint="Install it with: pip install 'clawmark[serve]'",
        )
