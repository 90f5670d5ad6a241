"""`clawmark mcp`: serve the memory to MCP hosts over standard input and output, or over HTTP."""

from __future__ import annotations

import asyncio
import sys
from argparse import ArgumentParser, Namespace
from importlib.util import find_spec

from clawmark.aio import AsyncMemory
from clawmark.cli.arguments import UsageError, count, some_text
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import is_terminal, note, plain
from clawmark.mcp.http.token import read_token, token_path
from clawmark.mcp.instructions import session_instructions
from clawmark.mcp.stdio.handshake import open_session
from clawmark.mcp.stdio.streams import claim_standard_streams
from clawmark.model.errors import ClawmarkError
from clawmark.system.shutdown import (
    exit_after_delay,
    shutdown_on_signals,
    stop_when_parent_dies,
    tune_garbage_collection,
)

EXAMPLES = """\
examples:
  claude mcp add clawmark -- clawmark mcp --workspace ~/agent
  clawmark mcp --http                   # http://127.0.0.1:8377/mcp, with a token
  clawmark mcp --http --session main    # the same, for one person's own agent"""

SHARED_SESSION = "agent:main:channel:mcp-http"
"""An HTTP client has not proven who it is, so by default it does not see private memory."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--http",
        action="store_true",
        help="serve streamable HTTP instead of standard input and output",
    )
    parser.add_argument(
        "--port",
        type=count(0, 65535),
        metavar="N",
        help="the port (default: 8377; 0 chooses a free one)",
    )
    parser.add_argument(
        "--host", type=some_text, metavar="IP", help="the address to listen on (default: 127.0.0.1)"
    )
    parser.add_argument(
        "--allow-remote",
        action="store_true",
        help="allow --host to be an address that other machines can reach",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        type=some_text,
        metavar="NAME",
        help="another host name that clients may use for the server",
    )
    parser.add_argument(
        "--session",
        metavar="KEY",
        help="the session to serve; `main` is a person's own agent "
        "(default: main; a shared session with --http)",
    )
    parser.add_argument(
        "--session-from-host",
        action="store_true",
        help="take the session of each request from its _meta, where the host names it; "
        "a request without one belongs to an unknown session (not with --http)",
    )


def run(args: Namespace) -> int:
    if not args.http and (
        args.port is not None or args.host or args.allow_remote or args.allow_host
    ):
        raise UsageError(
            "--port, --host, --allow-host and --allow-remote need --http.", hint="Add --http."
        )
    if args.session_from_host and (args.http or args.session is not None):
        raise UsageError(
            "--session-from-host cannot be combined with --http or --session.",
            hint="Only a host on standard input and output may name the session of a request.",
        )
    _require_extra()
    return _run_http(args) if args.http else _run_stdio(args)


def _run_stdio(args: Namespace) -> int:
    if is_terminal(sys.stdin):
        note(
            "clawmark: waiting for an MCP host on standard input; docs/how-to/mcp.md explains how "
            "hosts start this command."
        )
    streams = claim_standard_streams()  # before importing anything that could print
    session_key = "main" if args.session is None else args.session
    # The instructions contain no memory; each answer depends on the session of its request.
    described_key = None if args.session_from_host else session_key
    with open_memory(args) as memory:

        async def serve() -> int:
            shutdown = shutdown_on_signals()
            stop_when_parent_dies(shutdown)
            instructions = session_instructions(memory, described_key)
            opening = await open_session(streams, instructions, shutdown)
            if opening is None:
                return shutdown.code
            # Imported late: loading the SDK takes longer than some hosts wait for `initialize`.
            from clawmark.mcp.server import build_host_server, build_server
            from clawmark.mcp.stdio.server import serve_stdio

            async with AsyncMemory(lambda: memory) as served:
                server = (
                    build_host_server(served)
                    if args.session_from_host
                    else build_server(served, session_key)
                )
                tune_garbage_collection()
                code = await serve_stdio(server, streams, opening, shutdown)
                exit_after_delay(code)
                return code

        return asyncio.run(serve())


def _run_http(args: Namespace) -> int:
    # Imported late: the SDK is an optional extra.
    from clawmark.mcp.http.server import PORT, Address, check_address, serve_http
    from clawmark.mcp.server import build_server

    with open_memory(args) as memory:
        host = "127.0.0.1" if args.host in (None, "localhost") else args.host
        address = Address(
            host, PORT if args.port is None else args.port, tuple(args.allow_host or ())
        )
        token = read_token(memory.places.state_dir)
        check_address(address, token, allow_remote=args.allow_remote)

        def ready(bound: Address) -> None:
            shown = f"[{bound.host}]" if ":" in bound.host else bound.host
            token_file = plain(token_path(memory.places.state_dir))
            note(f"clawmark: MCP at http://{shown}:{bound.port}/mcp; the token is in {token_file}")

        async def serve() -> int:
            async with AsyncMemory(lambda: memory) as served:
                server = build_server(
                    served, SHARED_SESSION if args.session is None else args.session
                )
                tune_garbage_collection()
                code = await serve_http(server, address, token, ready)
                exit_after_delay(code)
                return code

        return asyncio.run(serve())


def _require_extra() -> None:
    if find_spec("mcp") is None or find_spec("mcp_types") is None:
        raise ClawmarkError(
            "The MCP server needs the extra `mcp`.",
            hint="Install it with: pip install 'clawmark[mcp]'",
        )
