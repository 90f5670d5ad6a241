"""`clawmark serve`: serve a team's memory over REST, MCP and a web page."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from clawmark.cli.arguments import count, some_text
from clawmark.cli.output import emit, note
from clawmark.cli.output import warn as print_warnings
from clawmark.config.load import load
from clawmark.config.paths import resolve_places
from clawmark.model.errors import ClawmarkError

if TYPE_CHECKING:
    from clawmark.config.schema.serve import ServeOptions

EXAMPLES = """\
examples:
  clawmark serve                                # http://127.0.0.1:8379
  clawmark serve --port 9000 --workers 4
  curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8379/v1/spaces

The database is `team.uri` or `memorySearch.store.uri`; the section `serve` has
the other settings. `clawmark token create` makes the tokens that clients send.
TLS is the work of a reverse proxy: docs/how-to/serve.md has examples for Caddy
and nginx."""
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
    from clawmark.serve.start import Start, run_server

    # The server has no files of its own, so it needs no workspace.
    places = resolve_places(
        args.workspace, args.agent, args.config, args.state_dir, must_exist=False
    )
    loaded = load(places)
    print_warnings(loaded.warnings)

    def ready(options: ServeOptions) -> None:
        host = f"[{options.host}]" if ":" in options.host else options.host
        address = f"http://{host}:{options.port}"
        if args.json:
            emit({"address": address, "publicUrl": options.public_url})
        else:
            note(f"clawmark: serving the team's memory at {address}")

    return run_server(
        Start(places=places, settings=loaded.settings, changes=_changes(args), ready=ready)
    )


def _changes(args: Namespace) -> dict[str, object]:
    """Return the options that flags replace."""
    host = "127.0.0.1" if args.host == "localhost" else args.host
    given = {"host": host, "port": args.port, "workers": args.workers}
    return {name: value for name, value in given.items() if value is not None}


def _require_extra() -> None:
    if any(find_spec(name) is None for name in NEEDED):
        raise ClawmarkError(
            "The server of a team's memory needs the extra `serve`.",
            hint="Install it with: pip install 'clawmark[serve]'",
        )
