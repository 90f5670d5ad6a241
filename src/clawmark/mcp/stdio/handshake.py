"""Answer `initialize` on stdio before the MCP SDK is loaded, which takes most of a second.

The answer is the one that the SDK would give. The SDK then gets the same request, so that its
session is in the right state, and its own answer is dropped. Anything else than a plain
`initialize` request (another method, odd parameters, a broken line) is left to the SDK."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from contextlib import suppress
from typing import Any, NamedTuple

import clawmark
from clawmark.mcp.stdio.streams import Streams, write_all
from clawmark.mcp.strict_json import parse_json
from clawmark.system.shutdown import Shutdown

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The protocol versions that start with `initialize`, oldest first."""
SERVER_INFO = {
    "name": "clawmark",
    "title": "Clawmark memory",
    "description": "Long-term memory in Markdown files, searched by meaning and by words.",
    "version": clawmark.__version__,
}
CAPABILITIES = {
    "prompts": {"listChanged": False},
    "resources": {"subscribe": True, "listChanged": True},
    "tools": {"listChanged": False},
}
MAX_LINE = 1 << 16
"""A longer first line is left to the SDK."""
_CLIENT_CAPABILITIES = ("elicitation", "experimental", "extensions", "roots", "sampling", "tasks")
_CLIENT_INFO = ("name", "version", "title", "description", "websiteUrl")


class Handshake(NamedTuple):
    """The answer to `initialize`, and the request for the SDK under an id of our own."""

    answer: bytes
    request: bytes
    request_id: str


class Opening(NamedTuple):
    """The bytes that the SDK reads first, and the id of its answer that is dropped."""

    data: bytes
    request_id: str = ""


def answer_initialize(line: bytes, instructions: str) -> Handshake | None:
    """Answer a line that is a plain `initialize` request; None for anything else."""
    try:
        message = parse_json(line)
    except ValueError:
        return None
    if not isinstance(message, dict) or not _is_plain(message):
        return None
    asked = message["params"]["protocolVersion"]
    version = asked if asked in VERSIONS else VERSIONS[-1]
    result = {
        "protocolVersion": version,
        "capabilities": CAPABILITIES,
        "serverInfo": SERVER_INFO,
        "instructions": instructions,
    }
    request_id = f"initialize-{os.urandom(8).hex()}"
    request = {
        **message,
        "id": request_id,
        "params": {**message["params"], "protocolVersion": version},
    }
    return Handshake(
        _line({"jsonrpc": "2.0", "id": message["id"], "result": result}), _line(request), request_id
    )


async def open_session(streams: Streams, instructions: str, shutdown: Shutdown) -> Opening | None:
    """Read the first line and answer it if it is `initialize`; None if the server must stop."""
    first = await _first_bytes(streams.input, shutdown)
    if not first:
        return None
    line, newline, rest = first.partition(b"\n")
    handshake = answer_initialize(line, instructions) if newline else None
    if handshake is None:
        return Opening(first)
    try:
        write_all(streams.output, handshake.answer)
    except OSError:
        return None  # the client no longer reads
    return Opening(handshake.request + rest, handshake.request_id)


async def _first_bytes(descriptor: int, shutdown: Shutdown) -> bytes:
    """Read up to the first line; empty at the end of the input or on a shutdown."""
    loop = asyncio.get_running_loop()
    received: asyncio.Future[bytes] = loop.create_future()

    def deliver(data: bytes) -> None:
        if not received.done():
            received.set_result(data)

    def read() -> None:
        data = b""
        with suppress(OSError):  # unreadable input counts as ended
            while (
                b"\n" not in data
                and len(data) <= MAX_LINE
                and (chunk := os.read(descriptor, MAX_LINE))
            ):
                data += chunk
        with suppress(RuntimeError):  # the event loop is closed
            loop.call_soon_threadsafe(deliver, data)

    # A daemon thread, because a blocking read cannot be interrupted.
    threading.Thread(target=read, daemon=True).start()
    stopped = asyncio.ensure_future(shutdown.wait())
    await asyncio.wait((received, stopped), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    return received.result() if received.done() else b""


def _is_plain(message: dict[str, Any]) -> bool:
    """Whether a message is an `initialize` request that the SDK is certain to accept."""
    identity, params = message.get("id"), message.get("params")
    if message.keys() != {"jsonrpc", "id", "method", "params"} or not isinstance(params, dict):
        return False
    capabilities, info = params.get("capabilities"), params.get("clientInfo")
    return (
        message["jsonrpc"] == "2.0"
        and message["method"] == "initialize"
        and isinstance(identity, str | int)
        and not isinstance(identity, bool)
        and params.keys() == {"protocolVersion", "capabilities", "clientInfo"}
        and isinstance(params["protocolVersion"], str)
        and isinstance(capabilities, dict)
        and all(
            _is_nested_objects(capabilities[name])
            for name in _CLIENT_CAPABILITIES
            if name in capabilities
        )
        and isinstance(info, dict)
        and info.keys() <= set(_CLIENT_INFO)
        and {"name", "version"} <= info.keys()
        and all(isinstance(text, str) for text in info.values())
    )


def _is_nested_objects(value: object) -> bool:
    """Whether a capability holds only objects and booleans named `listChanged`."""
    return isinstance(value, dict) and all(
        isinstance(inner, bool) if name == "listChanged" else _is_nested_objects(inner)
        for name, inner in value.items()
    )


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode("utf-8") + b"\n"
