"""`clawmark db`: set up, upgrade or examine the PostgreSQL database of the index."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from clawmark.cli.arguments import some_text
from clawmark.cli.as_json import as_json
from clawmark.cli.layout import size, table
from clawmark.cli.output import emit, plain, say
from clawmark.composition.stores import database_status, upgrade_database, with_uri
from clawmark.config.load import load
from clawmark.config.paths import resolve_places

if TYPE_CHECKING:
    from clawmark.store.postgres.migrate import DatabaseStatus

EXAMPLES = """\
examples:
  clawmark db init
  clawmark db init --uri '${CLAWMARK_DATABASE}'   # before the settings name it
  clawmark db upgrade
  clawmark db status --json

`memorySearch.store.uri` names the database. `init` and `upgrade` need a login
that may create tables, a role and the extension `vector`."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action",
        choices=("init", "upgrade", "status"),
        help="make the tables, bring them up to date, or show their state",
    )
    parser.add_argument(
        "--uri",
        type=some_text,
        metavar="ADDRESS",
        help="the database, if it is not the configured one; ${NAME} is filled in",
    )


def run(args: Namespace) -> int:
    places = resolve_places(
        args.workspace, args.agent, args.config, args.state_dir, must_exist=False
    )
    settings = load(places).settings
    if args.uri:
        settings = with_uri(settings, args.uri)
    done = upgrade_database(settings) if args.action != "status" else ()
    status = database_status(settings)
    if args.json:
        emit({"applied": list(done), "status": as_json(status)})
    elif args.action == "status":
        say("\n".join(_lines(status)))
    else:
        what = f"applied {', '.join(done)}" if done else "the tables are up to date"
        say(f"{plain(status.address)}: {what}.")
    return 1 if status.pending else 0


def _lines(status: DatabaseStatus) -> list[str]:
    """Return the state of a database as a table."""
    return table(
        [
            ("Database", plain(status.address)),
            ("PostgreSQL", plain(status.server_version)),
            ("pgvector", plain(status.vector_version) or "not installed"),
            ("Applied", ", ".join(status.applied) or "nothing: run `clawmark db init`"),
            ("Missing", ", ".join(status.pending) or "nothing"),
            ("Size", size(status.bytes)),
            ("HNSW", ", ".join(status.vector_indexes.made) or "none"),
            (
                "Without HNSW",
                ", ".join(status.vector_indexes.missing) or "no large vector space",
            ),
        ]
    )
