"""`clawmark web`: browse, search and review the memory in a browser on this machine."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser, Namespace
from importlib.util import find_spec
from typing import Any

from clawmark.cli.arguments import count
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import emit, note, say
from clawmark.model.errors import ClawmarkError
from clawmark.system.shutdown import exit_after_delay, tune_garbage_collection

EXAMPLES = """\
examples:
  clawmark web                  # opens the browser
  clawmark web --no-open        # prints the address only
  clawmark web --port 9000"""
NEEDED = ("starlette", "uvicorn", "jinja2", "markdown_it")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        type=count(0, 65535),
        metavar="N",
        help="the port (default: 8378, or a free one if it is taken; 0 chooses a free one)",
    )
    parser.add_argument("--no-open", action="store_true", help="do not open the browser")


def run(args: Namespace) -> int:
    if any(find_spec(name) is None for name in NEEDED):
        raise ClawmarkError(
            "The web page needs the extra `web`.",
            hint="Install it with: pip install 'clawmark[web]'",
        )
    # Imported here: an optional extra.
    from clawmark.web import server

    def ready(addresses: Any) -> None:
        if args.json:
            emit({"address": addresses.printed})
        else:
            say(addresses.printed)
            note("clawmark: the page is open until you stop this command with Ctrl-C.")
        if not args.no_open:
            server.open_browser(addresses.opened)

    with open_memory(args, background=True) as memory:
        tune_garbage_collection()
        code: int = asyncio.run(server.serve(memory, args.port, ready))
        exit_after_delay(code)
        return code
