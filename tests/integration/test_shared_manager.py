"""Memories of the same folder in one process share one manager, which the last one closes."""

from __future__ import annotations

import gc
import json
import os
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from clawmark import Memory
from clawmark.testing.embedders import HashingEmbedder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "MEMORY.md").write_text("The heron nests by the long pier.\n", encoding="utf-8")
    return folder


def opened(workspace: Path, **options: object) -> Memory:
    given = {"provider": "none", "state_dir": workspace.parent / "state", **options}
    return Memory.open(workspace, **given)  # type: ignore[arg-type]


def test_two_memories_of_a_folder_share_index_and_worker(workspace: Path) -> None:
    with opened(workspace) as one, opened(workspace) as other:
        assert one._builtin is other._builtin
        assert one._backend is other._backend


def test_closing_one_leaves_the_other_working(workspace: Path) -> None:
    one, other = opened(workspace), opened(workspace)
    one.search("heron")
    one.close()
    one.close()
    assert other.search("heron").hits
    assert other.sync().due_files == 0
    other.close()


def test_the_last_close_releases_the_manager(workspace: Path) -> None:
    one, other = opened(workspace), opened(workspace)
    one.sync()
    shared = one._builtin
    assert shared.background().is_begun is False
    shared.background().worker()
    one.close()
    assert shared.background().is_begun
    other.close()
    with opened(workspace) as third:
        assert third._builtin is not shared


def test_a_file_written_before_the_second_opening_is_found_by_it(workspace: Path) -> None:
    with opened(workspace) as one:
        assert one.search("heron").hits
        (workspace / "memory").mkdir()
        (workspace / "memory" / "new.md").write_text("Zebras graze inland.\n", encoding="utf-8")
        with opened(workspace) as other:
            assert other.search("zebras").hits


@pytest.mark.parametrize(
    "options",
    [
        {"overrides": {"memorySearch.query.maxResults": 3}},
        {"background": False},
        {"provider": "static"},
        {"embedder": HashingEmbedder()},
    ],
    ids=lambda options: "-".join(options),
)
def test_other_settings_do_not_share(workspace: Path, options: dict[str, object]) -> None:
    with opened(workspace) as one, opened(workspace, **options) as other:
        assert one._builtin is not other._builtin
        assert one.search("heron").hits and other.search("heron").hits


def test_a_changed_configuration_file_does_not_share(workspace: Path) -> None:
    config = workspace.parent / "clawmark.json"
    config.write_text("{}", encoding="utf-8")
    with opened(workspace, config=config) as one:
        config.write_text(json.dumps({"memory": {"citations": "off"}}), encoding="utf-8")
        with opened(workspace, config=config) as other:
            assert one._builtin is not other._builtin


def test_a_key_that_was_set_since_does_not_share(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(workspace) as one:
        monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
        with opened(workspace) as other:
            assert one._builtin is not other._builtin


def test_the_same_embedder_is_closed_with_the_last_memory(workspace: Path) -> None:
    class Closable(HashingEmbedder):
        closed = 0

        def close(self) -> None:
            self.closed += 1

    embedder = Closable()
    one = opened(workspace, provider=None, embedder=embedder)
    other = opened(workspace, provider=None, embedder=embedder)
    one.close()
    assert embedder.closed == 0
    assert other.search("heron").hits
    other.close()
    assert embedder.closed == 1


def test_threads_that_open_at_once_share(workspace: Path) -> None:
    barrier = Barrier(8)

    def enter(_: int) -> Memory:
        barrier.wait()
        return opened(workspace)

    with ThreadPoolExecutor(8) as pool:
        memories = list(pool.map(enter, range(8)))
    assert len({id(memory._builtin) for memory in memories}) == 1
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(Memory.close, memories[1:]))
    assert memories[0].search("heron").hits
    memories[0].close()


def test_a_forked_child_makes_a_manager_of_its_own(workspace: Path) -> None:
    with opened(workspace) as memory:
        memory.sync()
        child = os.fork()
        if not child:
            with opened(workspace) as own:
                is_own = own._builtin is not memory._builtin
                found = bool(own.search("heron").hits)
            os._exit(0 if is_own and found else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert memory.search("heron").hits


def test_a_memory_that_is_dropped_without_closing_leaves_no_manager(workspace: Path) -> None:
    memory = opened(workspace, background=False)
    manager = weakref.ref(memory._lease.manager)
    del memory
    gc.collect()
    assert manager() is None


def test_a_watching_of_one_memory_ends_with_it(workspace: Path) -> None:
    with opened(workspace) as one:
        other = opened(workspace)
        watching = other.watch(files=True)
        assert watching.wait_quiet(60)
        other.close()
        assert one.search("heron").hits
