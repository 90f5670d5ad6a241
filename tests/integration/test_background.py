"""What a memory does beside answering: it finishes what a search had no time for, and the old
answers stay meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from embeddings import EmbeddingServer

from clawmark import Memory
from clawmark.backends import freshening
from clawmark.engine.sync.scan import SyncRequest
from clawmark.model.reports import WatchEvent
from clawmark.testing import HashingEmbedder

LONG = 60.0
"""A test that has to wait this long has failed."""
QUESTION = "where does the heron nest?"


@pytest.fixture(autouse=True)
def _no_last_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look past the clock's grain comes at once, so that no test waits for it."""
    monkeypatch.setattr("clawmark.engine.sync.worker.SETTLE_SECONDS", 0.0)


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as running:
        yield running


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "agent" / "memory"
    folder.mkdir(parents=True)
    for day in range(1, 29):
        (folder / f"2026-02-{day:02d}.md").write_text(
            f"# Day {day}\n\n- Note {day}: the heron nests by pier {day}.\n"
        )
    return folder.parent


Settings = dict[str, object]


def opened(workspace: Path, settings: Settings | None = None, *, background: bool = True) -> Memory:
    dotted = {f"memorySearch.{name}": value for name, value in (settings or {}).items()}
    return Memory.open(
        workspace,
        state_dir=workspace.parent / "state",
        embedder=None if "memorySearch.provider" in dotted else HashingEmbedder(),
        overrides={"memorySearch.sync.watchDebounceMs": 10, **dotted},
        background=background,
    )


def service(server: EmbeddingServer, **more: object) -> Settings:
    return {
        "provider": "openai",
        "remote.baseUrl": server.url,
        "remote.apiKey": "not-a-real-key",
        **more,
    }


def begun(memory: Memory) -> bool:
    return memory._builtin.background().is_begun


def wait_idle(memory: Memory) -> None:
    keeper = memory._builtin.background().worker()
    assert keeper.wait_for(lambda: keeper.is_idle and keeper.runs > 0, LONG)


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("clawmark")}


def test_a_search_with_nothing_left_to_do_begins_no_thread(workspace: Path) -> None:
    with opened(workspace) as memory:
        memory.sync()
        assert memory.search(QUESTION).hits
        assert not begun(memory) and threads() == set()


def test_a_search_without_time_hands_the_rest_over_and_says_what_is_due(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(workspace) as memory:
        memory.sync()
        for number in range(100):
            (workspace / "memory" / f"later-{number}.md").write_text(
                f"The kingfisher number {number} came late."
            )
        monkeypatch.setattr(freshening, "FRESHEN_SECONDS", 0.0)
        found = memory.search("kingfisher")
        assert found.hits and found.due_files
        wait_idle(memory)
        assert memory.status().due_files == 0
        assert memory.status().last_sync["reason"] == "search"
    assert threads() == set()


def test_without_a_background_the_rest_stays_due(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(workspace, background=False) as memory:
        memory.sync()
        for number in range(100):
            (workspace / "memory" / f"later-{number}.md").write_text(
                f"The kingfisher number {number} came late."
            )
        monkeypatch.setattr(freshening, "FRESHEN_SECONDS", 0.0)
        assert memory.search("kingfisher").due_files
        assert threads() == set()


def test_another_embedder_is_filled_in_the_background_while_the_old_one_answers(
    workspace: Path, server: EmbeddingServer
) -> None:
    models = ("text-embedding-3-small", "text-embedding-ada-002")
    with opened(workspace, service(server, model=models[0])) as memory:
        memory.sync()
    server.delay = 0.2
    with opened(workspace, service(server, model=models[1])) as memory:
        found = memory.search(QUESTION)
        assert found.model == models[0] and found.hits and found.due_vectors == 28
        wait_idle(memory)
        assert memory.search(QUESTION).model == models[1]
        assert memory.status().last_sync["reason"] == "identity"
        assert memory.verify().problems == ()


def test_without_a_background_another_embedder_waits_for_an_index(
    workspace: Path, server: EmbeddingServer
) -> None:
    with opened(workspace, service(server), background=False) as memory:
        memory.sync()
    sent = len(server.requests)
    settings = service(server, model="text-embedding-ada-002")
    with opened(workspace, settings, background=False) as memory:
        found = memory.search(QUESTION)
        assert found.model == "text-embedding-3-small" and found.due_vectors == 28
    assert len(server.requests) == sent + 1, "one query, and no passage"


def test_a_service_that_is_away_is_not_asked_again_by_every_search(
    workspace: Path, server: EmbeddingServer
) -> None:
    with opened(workspace, service(server)) as memory:
        memory.sync(instant_only=True)
        server.spoil(401)
        assert memory.search(QUESTION).hits
        wait_idle(memory)
        sent = len(server.requests)
        runs = memory._builtin.background().worker().runs
        for _ in range(5):
            memory._builtin.freshener.expire()
            assert memory.search(QUESTION).hits
        assert memory._builtin.background().worker().runs == runs
        assert len(server.requests) - sent <= 5, "at most the queries themselves"
        assert memory.status().due_vectors == 28


def test_the_background_stops_at_the_daily_budget(workspace: Path, server: EmbeddingServer) -> None:
    with opened(workspace, service(server) | {"remote.dailyTokens": 10}) as memory:
        memory.sync(instant_only=True)
        assert memory.search(QUESTION).hits
        wait_idle(memory)
        assert memory.status().due_vectors == 28
        assert memory.search(QUESTION).hits


def test_another_chunking_is_rebuilt_in_the_background_and_old_passages_answer(
    workspace: Path,
) -> None:
    with opened(workspace) as memory:
        memory.sync()
    with opened(workspace, {"chunking.tokens": 100}) as memory:
        assert memory.search(QUESTION).hits
        wait_idle(memory)
        status = memory.status()
        assert (status.generation, status.rebuilding) == (2, False)
        assert memory.search(QUESTION).hits and memory.verify().problems == ()


def test_without_a_background_another_chunking_is_said_and_new_notes_are_found_all_the_same(
    workspace: Path,
) -> None:
    with opened(workspace) as memory:
        memory.sync()
    with opened(workspace, {"chunking.tokens": 100}, background=False) as memory:
        (workspace / "memory" / "new.md").write_text("The osprey is new.")
        found = memory.search("osprey")
        assert found.hits[0].path == "memory/new.md"
        assert found.degraded is not None and "chunking" in found.degraded.reason
        assert memory.status().generation == 1
        memory.sync()
        assert memory.search("osprey").degraded is None


def test_another_scope_is_noticed_by_the_next_search(workspace: Path) -> None:
    team = workspace.parent / "team"
    team.mkdir()
    (team / "birds.md").write_text("The bittern booms in the reeds.")
    with opened(workspace) as memory:
        memory.sync()
        assert not [hit for hit in memory.search("bittern").hits if hit.path.startswith("..")]
    with opened(workspace, {"extraPaths": [str(team)]}) as memory:
        assert memory.search("bittern").hits[0].path == "../team/birds.md"
    with opened(workspace) as memory:
        assert not [hit for hit in memory.search("bittern").hits if hit.path.startswith("..")]
        assert memory.status().due_files == 0


def test_new_notes_are_found_while_the_background_is_busy(
    workspace: Path, server: EmbeddingServer
) -> None:
    server.delay = 3.0
    with opened(workspace, service(server)) as memory:
        memory.sync(instant_only=True)
        memory.search(QUESTION)
        assert memory._builtin.background().is_busy
        (workspace / "memory" / "now.md").write_text("The osprey came while others worked.")
        memory._builtin.freshener.expire()
        assert "memory/now.md" in {hit.path for hit in memory.search("osprey").hits}
        assert memory._builtin.background().is_busy
        server.delay = 0.0


@pytest.fixture
def held(workspace: Path) -> Iterator[Memory]:
    """A memory of many new files whose keeper has begun with them, and goes on when the memory is
    closed.
    """
    for number in range(300):
        (workspace / "memory" / f"later-{number}.md").write_text(
            f"The kingfisher number {number} came late."
        )
    written_ns = time.time_ns()
    while time.time_ns() < written_ns + 2 * freshening.TICK_NS:
        continue  # else they would count as written since the memory was opened
    begun, may_go_on = threading.Event(), threading.Event()

    def hold(event: WatchEvent) -> None:
        begun.set()
        assert may_go_on.wait(LONG)

    with opened(workspace) as memory:
        memory.watch(hold, files=False)
        assert begun.wait(LONG)
        yield memory
        may_go_on.set()


def test_a_search_leaves_many_files_to_the_keeper_that_is_at_them(held: Memory) -> None:
    found = held.search("kingfisher")
    assert found.due_files == 328
    assert found.nothing is not None and found.nothing.code == "still-indexing"
    assert held.status().files == 0


def test_what_changes_during_a_sync_is_found_by_the_next_search(
    held: Memory, workspace: Path
) -> None:
    written = held.append("The osprey came while others worked.")
    found = held.search("osprey")
    assert written.path in {hit.path for hit in found.hits}
    assert found.due_files == 328
    (workspace / "memory" / "later-7.md").write_text("The puffin took its place.")
    held._builtin.freshener.expire()
    assert {hit.path for hit in held.search("puffin").hits} == {"memory/later-7.md"}


def test_few_files_are_indexed_while_the_worker_is_busy(
    held: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshening, "MANY_FILES", 1000)
    found = held.search("kingfisher")
    assert found.hits


def test_closing_does_not_wait_for_a_service_that_does_not_answer(
    workspace: Path, server: EmbeddingServer
) -> None:
    server.delay = 3600.0
    with opened(workspace, service(server)) as memory:
        memory.sync(instant_only=True)
        memory.search(QUESTION)
        assert memory._builtin.background().is_busy
    assert threads() == set()


def test_a_session_starts_one_sync_and_its_key_no_second_one(workspace: Path) -> None:
    with opened(workspace) as memory:
        assert memory.session_started("agent:main:main")
        wait_idle(memory)
        assert (
            memory.status().files == 28 and memory.status().last_sync["reason"] == "session-start"
        )
        assert not memory.session_started("agent:main:main")
        assert memory.session_started("agent:main:other")
    with opened(workspace, {"sync.onSessionStart": False}) as memory:
        assert not memory.session_started("agent:main:main")
        assert not begun(memory)


def test_a_session_of_a_process_without_background_is_served_at_once(workspace: Path) -> None:
    with opened(workspace, background=False) as memory:
        assert memory.session_started("agent:main:main")
        assert memory.status().files == 28 and threads() == set()


def test_a_compaction_brings_the_index_up_to_date(workspace: Path) -> None:
    with opened(workspace) as memory:
        memory.compacted()
        wait_idle(memory)
        assert memory.status().last_sync["reason"] == "post-compaction"


def test_the_clock_brings_the_index_up_to_date(workspace: Path) -> None:
    with opened(workspace, {"sync.intervalMinutes": 1}) as memory:
        background = memory._builtin.background()
        assert background.is_begun
        background.worker()._interval = 0.01
        background.ask(SyncRequest())
        assert background.worker().wait_for(lambda: background.worker().runs >= 3, LONG)
