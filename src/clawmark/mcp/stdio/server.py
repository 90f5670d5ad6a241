"""MCP over standard input and output: one message a line, and nothing but messages on the output.

In: lines of at most 8 MiB from a client that may send anything. Out: an answer to every request,
errors for what is none. A client that does not read is not read from either: at most so many
requests are under way at once."""

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

from clawmark.mcp.messages import Refusal, dump_message, read_message
from clawmark.mcp.shutdown import Ending
from clawmark.mcp.stdio.handshake import Opening
from clawmark.mcp.stdio.streams import Wire, write_all

LONGEST_LINE = 8 << 20
MOST_UNDER_WAY = 64
MOST_UNWRITTEN = 1024
"""Answers and notices that wait for a client to read; there are never more answers than requests
under way.
"""
LAST_SECONDS = 1.0
_READ_BYTES = 1 << 16


async def serve_stdio(server: Server[Any], wire: Wire, opening: Opening, ending: Ending) -> int:
    """Serve until the input ends, a signal comes or the parent is gone; the exit code."""
    into, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, out = anyio.create_memory_object_stream[SessionMessage](MOST_UNWRITTEN)
    room, reading = anyio.Semaphore(MOST_UNDER_WAY), anyio.CancelScope()
    options = server.create_initialization_options()

    async def read() -> None:
        async with into:
            with reading:
                async for line in _lines(wire.input, opening.data):
                    await _take(line, into, outgoing, room)
                # The input has ended: what was asked before is still answered, if that takes no
                # time.
                with anyio.move_on_after(LAST_SECONDS):
                    for _ in range(MOST_UNDER_WAY):
                        await room.acquire()

    def is_answered(message: JSONRPCMessage) -> bool:
        """Whether this is the SDK's own answer to the request that was answered before the SDK was
        loaded.
        """
        return bool(opening.request_id) and getattr(message, "id", None) == opening.request_id

    async def write() -> None:
        try:
            async for answer in out:
                if not is_answered(answer.message):
                    line = dump_message(answer.message) + b"\n"
                    await anyio.to_thread.run_sync(
                        write_all, wire.output, line, abandon_on_cancel=True
                    )
                if isinstance(answer.message, JSONRPCResponse | JSONRPCError):
                    room.release()
        except OSError:
            ending.come()  # nobody reads any more

    async def end() -> None:
        await ending.wait()
        reading.cancel()  # which the server takes for the end of its input

    async with anyio.create_task_group() as group, outgoing, out:
        for task in (read, write, end):
            group.start_soon(task)
        await server.run(incoming, outgoing.clone(), options)
        group.cancel_scope.cancel()
    return ending.code


async def _take(
    line: bytes | None,
    into: MemoryObjectSendStream[SessionMessage | Exception],
    outgoing: MemoryObjectSendStream[SessionMessage],
    room: anyio.Semaphore,
) -> None:
    """Hand one line to the server, or answer that it is no message; waits while too much is under
    way.
    """
    if line is not None and not line.strip():
        return
    message = (
        Refusal(INVALID_REQUEST, "The line is longer than 8 MiB.")
        if line is None
        else read_message(line)
    )
    if isinstance(message, Refusal):
        await room.acquire()
        await outgoing.send(SessionMessage(message.message()))
    elif isinstance(message, JSONRPCRequest):
        await room.acquire()

        async def unanswered() -> None:
            room.release()

        await into.send(
            SessionMessage(message, ServerMessageMetadata(on_request_unanswered=unanswered))
        )
    else:
        await into.send(SessionMessage(message))


async def _lines(descriptor: int, chunk: bytes) -> AsyncIterator[bytes | None]:
    """The lines of the input without their ends, beginning with `chunk`, which was read before.

    None stands for a line that is too long; it is not kept while it lasts.
    """
    kept, is_too_long = bytearray(), False
    while chunk:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            is_too_long = is_too_long or len(kept) + len(end) > LONGEST_LINE
            yield None if is_too_long else bytes(kept + end)
            kept, is_too_long = bytearray(), False
        is_too_long = is_too_long or len(kept) + len(rest) > LONGEST_LINE
        if is_too_long:
            kept = bytearray()
        else:
            kept += rest
        chunk = await anyio.to_thread.run_sync(
            os.read, descriptor, _READ_BYTES, abandon_on_cancel=True
        )
    if kept:
        yield bytes(kept)
