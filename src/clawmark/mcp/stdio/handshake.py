"""Answers `initialize` on stdio before the MCP SDK is loaded, because loading it takes most of a
second.

In: the first line of the input. Out: the answer that the SDK would give, and the request for the
SDK to see afterwards, so that its session is in the right state; its own answer is then dropped.
Whatever is not a plain `initialize` request (another method, odd parameters, a broken line) is not
answered here and passed on to the SDK as it came."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from contextlib import suppress
from typing import Any, NamedTuple

import clawmark
from clawmark.mcp.shutdown import Ending
from clawmark.mcp.stdio.streams import Wire, write_all
from clawmark.mcp.strict_json import parse_json

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The protocol versions that begin with `initialize`, oldest first."""
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
    """An answered `initialize`: the answer for the client, and the request for the SDK under an id
    of our own.
    """

    answer: bytes
    request: bytes
    request_id: str


class Opening(NamedTuple):
    """What was read before the SDK was loaded: the bytes it reads first, and the id of its answer
    to drop.
    """

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


async def open_session(wire: Wire, instructions: str, ending: Ending) -> Opening | None:
    """Read the first line and answer it if it is `initialize`; None when the server is to end
    before that.
    """
    first = await _first_bytes(wire.input, ending)
    if not first:
        return None
    line, newline, rest = first.partition(b"\n")
    handshake = answer_initialize(line, instructions) if newline else None
    if handshake is None:
        return Opening(first)
    try:
        write_all(wire.output, handshake.answer)
    except OSError:
        return None  # the client no longer reads
    return Opening(handshake.request + rest, handshake.request_id)


async def _first_bytes(descriptor: int, ending: Ending) -> bytes:
    """Read until there is a line; empty at the end of the input, or when the server is to end."""
    loop = asyncio.get_running_loop()
    received: asyncio.Future[bytes] = loop.create_future()

    def deliver(data: bytes) -> None:
        if not received.done():
            received.set_result(data)

    def read() -> None:
        data = b""
        with suppress(OSError):  # input that cannot be read has ended
            while (
                b"\n" not in data
                and len(data) <= MAX_LINE
                and (chunk := os.read(descriptor, MAX_LINE))
            ):
                data += chunk
        with suppress(RuntimeError):  # the loop is closed: the server has ended
            loop.call_soon_threadsafe(deliver, data)

    # A daemon thread, because a read cannot be interrupted when a signal ends the server.
    threading.Thread(target=read, daemon=True).start()
    ended = asyncio.ensure_future(ending.wait())
    await asyncio.wait((received, ended), return_when=asyncio.FIRST_COMPLETED)
    ended.cancel()
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
    """Whether a capability is made of objects only, and of booleans named `listChanged`, as the
    specification has them.
    """
    return isinstance(value, dict) and all(
        isinstance(inner, bool) if name == "listChanged" else _is_nested_objects(inner)
        for name, inner in value.items()
    )


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode("utf-8") + b"\n"
