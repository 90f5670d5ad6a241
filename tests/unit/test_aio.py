"""AsyncMemory has the methods of Memory, and runs them in worker threads."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.aio import AsyncMemory
from clawmark.model.errors import ClawmarkError, PathDenied
from clawmark.model.reports import Progress
from clawmark.testing import HashingEmbedder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "agent"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Facts\n\nBilling runs on PostgreSQL.\n", encoding="utf-8")
    return folder


def opened(workspace: Path) -> AsyncMemory:
    return AsyncMemory.open(
        workspace, state_dir=workspace.parent / "state", embedder=HashingEmbedder()
    )


def public(cls: type) -> dict[str, object]:
    return {name: member for name, member in inspect.getmembers(cls) if not name.startswith("_")}


def parameters(verb: Callable[..., object]) -> list[tuple[str, object, object]]:
    return [
        (one.name, one.kind, one.default) for one in inspect.signature(verb).parameters.values()
    ]


def test_every_method_of_memory_exists_with_the_same_parameters() -> None:
    plain, awaited = public(Memory), public(AsyncMemory)
    verbs = {name for name, member in plain.items() if callable(member)}
    assert verbs == {name for name, member in awaited.items() if callable(member)}
    for name in verbs:
        assert parameters(getattr(Memory, name)) == parameters(getattr(AsyncMemory, name)), name


def test_every_method_is_a_coroutine_except_those_whose_results_are_awaited() -> None:
    verbs = {name for name, member in public(AsyncMemory).items() if callable(member)} - {
        "open",
        "tools",
        "lifecycle",
    }
    assert [
        name
        for name in sorted(verbs)
        if not inspect.iscoroutinefunction(getattr(AsyncMemory, name))
    ] == []


async def use_it(workspace: Path) -> None:
    async with opened(workspace) as memory:
        report = await memory.sync()
        assert report.added == 1
        written = await memory.append("Redis replaces memcached for sessions.")
        found = await memory.search("redis sessions")
        assert written.path in [hit.path for hit in found.hits]
        assert (
            await memory.read("MEMORY.md", start=3, lines=1)
        ).text == "Billing runs on PostgreSQL."
        assert (await memory.plan())[0].due == 0
        assert (await memory.status()).files == 2
        assert (await memory.verify()).problems == ()
        assert await memory.doctor()
        assert memory.places.workspace == str(workspace)
        assert memory.settings == memory.loaded.settings


def test_the_methods_return_what_those_of_memory_return(workspace: Path) -> None:
    asyncio.run(use_it(workspace))


def test_it_can_be_opened_with_await_and_closed_twice(workspace: Path) -> None:
    async def by_hand() -> int:
        memory = await opened(workspace)
        files = (await memory.sync()).added
        await memory.close()
        await memory.close()
        return files

    assert asyncio.run(by_hand()) == 1


def test_concurrent_searches_are_all_answered(workspace: Path) -> None:
    async def many() -> list[str]:
        async with opened(workspace) as memory:
            await memory.sync()
            found = await asyncio.gather(*(memory.search("PostgreSQL billing") for _ in range(16)))
            return [one.hits[0].citation for one in found]

    assert len(set(asyncio.run(many()))) == 1


def test_searches_are_answered_while_a_sync_runs(workspace: Path) -> None:
    for number in range(40):
        (workspace / "memory" / f"note-{number}.md").write_text(
            f"Note {number} on billing.\n", encoding="utf-8"
        )

    async def both() -> int:
        async with opened(workspace) as memory:
            await memory.sync()
            rebuilding = asyncio.create_task(memory.sync(force=True))
            answers = await asyncio.gather(
                *(memory.search("billing", freshen=False) for _ in range(8))
            )
            assert all(answer.hits for answer in answers)
            return (await rebuilding).generation

    assert asyncio.run(both()) >= 1


def test_the_event_loop_stays_free_during_a_call(workspace: Path) -> None:
    reached = threading.Event()
    let_go = threading.Event()

    def hold(_: Progress) -> None:
        reached.set()
        assert let_go.wait(30)

    async def beside() -> bool:
        async with opened(workspace) as memory:
            syncing = asyncio.create_task(memory.sync(progress=hold))
            await asyncio.to_thread(reached.wait, 30)
            was_running = not syncing.done()
            let_go.set()
            await syncing
            return was_running

    assert asyncio.run(beside())


def test_tools_are_awaited(workspace: Path) -> None:
    async def call() -> list[dict[str, object]]:
        async with opened(workspace) as memory:
            await memory.sync()
            search, get = memory.tools()
            return [
                await search.call({"query": "PostgreSQL billing"}),
                await get.call({"path": "MEMORY.md"}),
            ]

    searched, got = asyncio.run(call())
    assert searched["results"]
    assert got["text"] == "# Facts\n\nBilling runs on PostgreSQL."


def test_errors_are_raised_unchanged(workspace: Path) -> None:
    async def outside() -> None:
        async with opened(workspace) as memory:
            await memory.read("../outside.md")

    with pytest.raises(PathDenied):
        asyncio.run(outside())


def test_using_a_memory_that_is_not_open_raises_an_error(workspace: Path) -> None:
    async def too_soon() -> None:
        memory = opened(workspace)
        try:
            await memory.search("anything")
        finally:
            await memory.close()

    with pytest.raises(ClawmarkError, match="not open") as error:
        asyncio.run(too_soon())
    assert "async with" in error.value.hint


def test_the_history_is_awaited(workspace: Path) -> None:
    async def use() -> tuple[int, str, bytes | None]:
        async with opened(workspace) as memory:
            await memory.append("The ferry leaves at nine", to="MEMORY.md")
            versions = await memory.history.versions("MEMORY.md")
            diff = await memory.history.diff("MEMORY.md")
            taken = await memory.history.undo(anyone=True)
            await memory.history.restore("MEMORY.md", versions[0].version.id)
            assert await memory.history.read("MEMORY.md", versions[0].version.id) == taken.before
            return len(versions), diff, taken.after

    count, diff, after = asyncio.run(use())
    assert count == 1
    assert "+- The ferry leaves at nine" in diff
    assert after == b"# Facts\n\nBilling runs on PostgreSQL.\n"
