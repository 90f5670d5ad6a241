"""MCP over standard input and output: one message per line.

Lines may have up to 8 MiB. Input is read only while fewer than `MAX_REQUESTS` requests are being
answered, so a client that does not read its answers cannot fill our memory."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server import Server
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import INVALID_REQUEST, JSONRPCError, JSONRPCMessage, JSONRPCRequest, JSONRPCResponse

from clawmark.mcp.messages import InvalidMessage, dump_message, read_message
from clawmark.mcp.stdio.handshake import Opening
from clawmark.mcp.stdio.streams import Streams, write_all
from clawmark.system.shutdown import Shutdown

MAX_LINE = 8 << 20
MAX_REQUESTS = 64
MAX_UNWRITTEN = 1024
"""Answers and notifications that wait for the client to read."""
LAST_SECONDS = 1.0
_READ_BYTES = 1 << 16


async def serve_stdio(
    server: Server[Any], streams: Streams, opening: Opening, shutdown: Shutdown
) -> int:
    """Serve until the input ends or a shutdown is requested; return the exit code."""
    into, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, out = anyio.create_memory_object_stream[SessionMessage](MAX_UNWRITTEN)
    slots, reading = anyio.Semaphore(MAX_REQUESTS), anyio.CancelScope()
    options = server.create_initialization_options()

    async def read() -> None:
        async with into:
            with reading:
                async for line in _lines(streams.input, opening.data):
                    await _handle_line(line, into, outgoing, slots)
                # The input has ended: requests that were read get a last second to be answered.
                with anyio.move_on_after(LAST_SECONDS):
                    for _ in range(MAX_REQUESTS):
                        await slots.acquire()

    def is_duplicate(message: JSONRPCMessage) -> bool:
        """Whether this answers the `initialize` that was answered before the SDK was loaded."""
        return bool(opening.request_id) and getattr(message, "id", None) == opening.request_id

    async def write() -> None:
        try:
            async for answer in out:
                if not is_duplicate(answer.message):
                    line = dump_message(answer.message) + b"\n"
                    await anyio.to_thread.run_sync(
                        write_all, streams.output, line, abandon_on_cancel=True
                    )
                if isinstance(answer.message, JSONRPCResponse | JSONRPCError):
                    slots.release()
        except OSError:
            shutdown.request()  # the client has closed its end

    async def stop() -> None:
        await shutdown.wait()
        reading.cancel()  # for the server this is the end of its input

    async with anyio.create_task_group() as group, outgoing, out:
        for task in (read, write, stop):
            group.start_soon(task)
        await server.run(incoming, outgoing.clone(), options)
        group.cancel_scope.cancel()
    return shutdown.code


async def _handle_line(
    line: bytes | None,
    into: MemoryObjectSendStream[SessionMessage | Exception],
    outgoing: MemoryObjectSendStream[SessionMessage],
    slots: anyio.Semaphore,
) -> None:
    """Pass one line to the server, or answer with an error; wait while all slots are taken."""
    if line is not None and not line.strip():
        return
    message = (
        InvalidMessage(INVALID_REQUEST, "The line is longer than 8 MiB.")
        if line is None
        else read_message(line)
    )
    if isinstance(message, InvalidMessage):
        await slots.acquire()
        await outgoing.send(SessionMessage(message.response()))
    elif isinstance(message, JSONRPCRequest):
        await slots.acquire()

        async def release() -> None:
            slots.release()

        await into.send(
            SessionMessage(message, ServerMessageMetadata(on_request_unanswered=release))
        )
    else:
        await into.send(SessionMessage(message))


async def _lines(descriptor: int, chunk: bytes) -> AsyncIterator[bytes | None]:
    """Yield the lines of the input, starting with `chunk`, which was read before.

    None stands for a line that is too long; its bytes are dropped as they arrive.
    """
    kept, is_too_long = bytearray(), False
    while chunk:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            is_too_long = is_too_long or len(kept) + len(end) > MAX_LINE
            yield None if is_too_long else bytes(kept + end)
            kept, is_too_long = bytearray(), False
        is_too_long = is_too_long or len(kept) + len(rest) > MAX_LINE
        if is_too_long:
            kept = bytearray()
        else:
            kept += rest
        chunk = await anyio.to_thread.run_sync(
            os.read, descriptor, _READ_BYTES, abandon_on_cancel=True
        )
    if kept:
        yield bytes(kept)
