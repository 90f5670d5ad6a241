"""A call that nobody waits for any more stops: its search at the next step, its wait for a service
at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import Place, new_place
from embeddings import EmbeddingServer

from clawmark import Memory
from clawmark.aio import AsyncMemory
from clawmark.system.cancellation import Cancellation, Cancelled
from clawmark.workspace.guard import open_root
from clawmark.workspace.write_lock import locked

HANG_SECONDS = 30
QUESTION = "which database did we choose for billing?"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as running:
        yield running


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new_place(tmp_path)


def comes(is_so: Callable[[], bool]) -> bool:
    """Whether something becomes so before a test would hang."""
    pause = threading.Event()
    return any(is_so() or pause.wait(0.01) for _ in range(HANG_SECONDS * 100))


def holds(server: EmbeddingServer, calls: int) -> Callable[[], bool]:
    """Whether so many calls have reached the service."""
    return lambda: len(server.tally.log) == calls


def let_go(server: EmbeddingServer) -> Callable[[], bool]:
    """Whether every call has ended, on whose side ever."""
    return lambda: all(record.ended for record in server.tally.log)


def open_async(place: Place, server: EmbeddingServer) -> AsyncMemory:
    remote = {
        "memorySearch.remote.baseUrl": server.url,
        "memorySearch.remote.apiKey": "not-a-real-key",
    }
    overrides = {"memorySearch.provider": "openai", **remote}
    return AsyncMemory.open(
        place.workspace, state_dir=place.state, overrides=overrides, background=False
    )


def test_a_cancelled_search_waits_for_no_service_and_blames_none(
    place: Place, server: EmbeddingServer
) -> None:
    async def cancel_then_search() -> str:
        async with open_async(place, server) as memory:
            await memory.sync()
            server.tally.reset()
            server.delay = HANG_SECONDS
            search = asyncio.create_task(memory.search(QUESTION))
            assert await asyncio.to_thread(comes, holds(server, 1))
            search.cancel()
            with pytest.raises(asyncio.CancelledError):
                await search
            assert await asyncio.to_thread(comes, let_go(server))
            assert len(server.tally.log) == 1
            server.delay = 0
            # A wait that ran out would have opened the breaker, and this one would be answered by
            # words alone.
            return (await memory.search(QUESTION)).provider

    before = threading.enumerate()
    assert asyncio.run(cancel_then_search()) == "openai"
    assert [thread.name for thread in threading.enumerate() if thread not in before] == []


def test_a_cancelled_search_indexes_no_further(place: Place) -> None:
    for number in range(2400):  # less than fits into the time of a first search
        place.write(
            f"memory/n{number:04}.md",
            f"# Note {number}\n\nSome words about nothing in particular.\n",
        )

    async def cancel_when_begun() -> None:
        memory = AsyncMemory.open(
            place.workspace, state_dir=place.state, provider="none", background=False
        )
        async with memory:
            search = asyncio.create_task(memory.search(QUESTION))
            with Memory.open(
                place.workspace, state_dir=place.state, provider="none", background=False
            ) as other:
                assert await asyncio.to_thread(comes, lambda: other.status().files > 0)
            search.cancel()

    asyncio.run(cancel_when_begun())
    with Memory.open(
        place.workspace, state_dir=place.state, provider="none", background=False
    ) as memory:
        assert memory.plan()[0].due > 0


def test_an_append_that_waits_for_its_turn_is_dropped(place: Place) -> None:
    cancellation = Cancellation()
    with Memory.open(place.workspace, state_dir=place.state, provider="none") as memory:
        dropped = list[bool]()

        def append() -> None:
            try:
                cancellation.run(lambda: memory.append("Nobody waits for this.", to="MEMORY.md"))
            except Cancelled:
                dropped.append(True)

        root = open_root(os.path.realpath(place.workspace))
        with root, locked(root, "MEMORY.md", memory.workspace._lock_dir):
            thread = threading.Thread(target=append)
            thread.start()
            cancellation.cancel()
            thread.join(HANG_SECONDS)
        assert dropped
        assert "Nobody waits" not in (place.workspace / "MEMORY.md").read_text()


def test_a_cancelled_tool_call_leaves_the_server_free(
    place: Place, server: EmbeddingServer
) -> None:
    pytest.importorskip("mcp")
    from mcp_servers import call, stdio_server

    config = place.folder / "config.json"
    remote = {"baseUrl": server.url, "apiKey": "not-a-real-key"}
    config.write_text(
        json.dumps({"memorySearch": {"provider": "openai", "remote": remote}}), encoding="utf-8"
    )
    env = place.environment({"CLAWMARK_CONFIG": str(config)})
    assert place.run("index", env=env).code == 0
    server.tally.reset()
    with stdio_server([], env) as running:
        running.initialize()
        server.delay = HANG_SECONDS
        names = [f"cancelled-{number}" for number in range(4)]  # as many as there are workers
        for name in names:
            running.send(call("memory_search", {"query": QUESTION}, name))
        assert comes(holds(server, len(names)))
        for name in names:
            running.send(
                {
                    "jsonrpc": "2.0",
                    "method": "notifications/cancelled",
                    "params": {"requestId": name},
                }
            )
        assert comes(let_go(server))
        server.delay = 0
        answer = running.ask(call("memory_search", {"query": QUESTION}, "next"))["result"][
            "structuredContent"
        ]
        assert answer["provider"] == "openai"
        assert len(server.tally.log) == len(names) + 1
        assert running.close() == 0
        assert running.errors() == ""
