"""What an answer claims about the files is at most a second old, and every hit is in its file.

The clock is the test's, and looks at the disk are counted, so that no test depends on the speed of
the machine."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.embed.base import Traits
from clawmark.engine.sync import run
from clawmark.engine.sync.scan import SyncParts, SyncRequest
from clawmark.model.errors import EmbeddingUnavailable, IndexBusy
from clawmark.model.reports import SyncReport
from clawmark.model.values import Scan, Vector
from clawmark.store.base import InspectedSnapshot
from clawmark.testing import HashingEmbedder

LONG = 60.0


class Disk:
    """The clock of a memory, and its looks at the disk, which take as long as the test sets."""

    def __init__(self, memory: Memory) -> None:
        self.now = 1000.0
        self.seconds = 0.001
        self.looks = 0
        self.began, self.may_look = threading.Event(), threading.Event()
        self.may_look.set()
        self._scan = memory.workspace.scan
        memory._builtin.freshener.clock = lambda: self.now
        memory.workspace.scan = self.scan  # type: ignore[method-assign]

    def scan(self) -> Scan:
        self.looks += 1
        self.began.set()
        assert self.may_look.wait(LONG)
        self.now += self.seconds
        return self._scan()


class SlowEmbedder(HashingEmbedder):
    """Calls a function when a question is embedded."""

    def __init__(self) -> None:
        super().__init__(dims=64)
        self.asked: Callable[[], None] = lambda: None

    def embed_query(self, text: str) -> Vector:
        self.asked()
        return super().embed_query(text)


@pytest.fixture
def embedder() -> SlowEmbedder:
    return SlowEmbedder()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "agent" / "memory"
    folder.mkdir(parents=True)
    for number in range(6):
        (folder / f"{number}.md").write_text(
            f"# Note {number}\n\nThe zebra number {number} is striped.\n", encoding="utf-8"
        )
    return folder.parent


def opened(
    workspace: Path, embedder: HashingEmbedder, *, background: bool = False, sessions: bool = False
) -> Memory:
    overrides = {"memorySearch.sources": ["memory", "sessions"]} if sessions else {}
    state = workspace.parent / "state"
    return Memory.open(
        workspace, state_dir=state, embedder=embedder, background=background, overrides=overrides
    )


@pytest.fixture
def memory(workspace: Path, embedder: SlowEmbedder) -> Iterator[Memory]:
    with opened(workspace, embedder) as memory:
        memory.sync()
        yield memory


def paths(memory: Memory, query: str, *, freshen: bool = True) -> list[str]:
    return [hit.path for hit in memory.search(query, min_score=0.0, freshen=freshen).hits]


def rewrite(workspace: Path, name: str, text: str) -> None:
    """Write a file as another program does, without the workspace."""
    (workspace / "memory" / name).write_text(text, encoding="utf-8")


# --- how old a look may be -----------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [0.04, 0.2])
def test_an_edit_by_another_process_is_found_a_second_later_even_if_a_look_is_expensive(
    memory: Memory, workspace: Path, seconds: float
) -> None:
    disk = Disk(memory)
    disk.seconds = seconds
    assert memory.search("zebra").due_files == 0
    rewrite(workspace, "new.md", "The quagga is extinct.")
    looks = disk.looks
    memory.search("zebra")
    assert disk.looks == looks, "a second search shares the look"
    disk.now += 1.0
    assert paths(memory, "quagga")[0] == "memory/new.md"


def test_a_cheap_look_is_repeated_after_twenty_times_its_duration(memory: Memory) -> None:
    disk = Disk(memory)
    memory.search("zebra")
    looks = disk.looks
    memory.search("zebra")
    assert disk.looks == looks
    disk.now += 20 * disk.seconds
    memory.search("zebra")
    assert disk.looks == looks + 1


def test_without_a_worker_an_expensive_look_is_shared_and_freshness_is_unknown(
    memory: Memory, workspace: Path
) -> None:
    disk = Disk(memory)
    disk.seconds = 0.6
    assert memory.search("zebra").due_files == 0
    rewrite(workspace, "new.md", "The quagga is extinct.")
    looks = disk.looks
    disk.now += 1.0
    found = memory.search("quagga")
    assert (disk.looks, found.due_files) == (looks, None)
    disk.now += 4 * disk.seconds
    found = memory.search("quagga")
    assert (found.hits[0].path, found.due_files) == ("memory/new.md", 0)


def test_a_worker_makes_an_expensive_look_and_freshness_is_unknown_until_then(
    workspace: Path, embedder: SlowEmbedder
) -> None:
    with opened(workspace, embedder, background=True) as memory:
        memory.search("zebra")
        keeper = memory._builtin.background().worker()
        disk = Disk(memory)
        disk.seconds = 0.6
        memory._builtin.freshener.expire()
        assert memory.search("zebra").due_files == 0
        rewrite(workspace, "new.md", "The quagga is extinct.")
        disk.now += 4 * disk.seconds
        disk.began.clear()
        disk.may_look.clear()
        looks = disk.looks
        assert memory.search("zebra").due_files is None
        assert disk.began.wait(LONG)
        for _ in range(5):
            assert memory.search("zebra").due_files is None, "asked once, and not waited for"
        assert disk.looks == looks + 1
        disk.seconds = 0.0
        disk.may_look.set()
        runs = keeper.runs
        assert keeper.wait_for(lambda: keeper.runs > runs or keeper.is_idle, LONG)
        assert paths(memory, "quagga")[0] == "memory/new.md"


def test_a_search_that_did_not_look_does_not_claim_that_nothing_is_due(
    memory: Memory, workspace: Path
) -> None:
    disk = Disk(memory)
    assert memory.search("zebra", freshen=False).due_files is None
    memory.search("zebra")
    assert memory.search("zebra", freshen=False).due_files == 0
    disk.now += 1.1
    rewrite(workspace, "new.md", "The quagga is extinct.")
    assert memory.search("zebra", freshen=False).due_files is None


def test_the_disk_is_looked_at_again_after_a_slow_service_embedded_the_question(
    memory: Memory, workspace: Path, embedder: SlowEmbedder
) -> None:
    disk = Disk(memory)

    def edit_during_the_call() -> None:
        embedder.asked = lambda: None
        rewrite(workspace, "new.md", "The quagga is extinct.")
        disk.now += 5.0

    embedder.asked = edit_during_the_call
    found = memory.search("quagga")
    assert (found.hits[0].path, found.due_files) == ("memory/new.md", 0)


def test_files_that_change_during_indexing_are_counted_as_due(
    memory: Memory, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(memory)
    original = run.run_sync

    def slow(parts: SyncParts, request: SyncRequest) -> SyncReport:
        report = original(parts, request)
        rewrite(workspace, "later.md", "The okapi came later.")
        disk.now += 1.4
        return report

    monkeypatch.setattr(run, "run_sync", slow)
    rewrite(workspace, "new.md", "The quagga is extinct.")
    assert memory.search("quagga").due_files == 1


def count_snapshots(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the snapshots that have been opened, and those that are open now."""
    store, counts = memory._builtin.parts.store, [0, 0]
    original = store.snapshot

    @contextmanager
    def counted(*, thorough: bool = False) -> Iterator[InspectedSnapshot]:
        with original(thorough=thorough) as reader:
            counts[0] += 1
            counts[1] += 1
            try:
                yield reader
            finally:
                counts[1] -= 1

    monkeypatch.setattr(store, "snapshot", counted)
    return counts


@pytest.mark.parametrize("looks", [True, False])
def test_a_warm_search_reads_from_one_snapshot_of_the_index(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, looks: bool
) -> None:
    disk = Disk(memory)
    memory.search("zebra")
    counts, before = count_snapshots(memory, monkeypatch), disk.looks
    disk.now += 10.0 if looks else 0.0
    assert memory.search("zebra").due_files == 0
    assert disk.looks - before == int(looks)
    assert counts == [1, 0]


class ServiceEmbedder(SlowEmbedder):
    """Embeds as a service does: over the network, and perhaps slowly."""

    @property
    def traits(self) -> Traits:
        return super().traits._replace(remote=True)


def test_no_snapshot_is_open_while_a_service_embeds_the_question(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = ServiceEmbedder()
    with opened(workspace, embedder) as memory:
        memory.sync()
        counts = count_snapshots(memory, monkeypatch)
        open_then: list[int] = []
        embedder.asked = lambda: open_then.append(counts[1])
        assert memory.search("zebra").hits
        assert open_then == [0]


def test_no_snapshot_is_open_while_a_search_indexes(
    memory: Memory, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts, original = count_snapshots(memory, monkeypatch), run.run_sync
    open_then: list[int] = []

    def seen(parts: SyncParts, request: SyncRequest) -> SyncReport:
        open_then.append(counts[1])
        return original(parts, request)

    monkeypatch.setattr(run, "run_sync", seen)
    rewrite(workspace, "new.md", "The quagga is extinct.")
    assert paths(memory, "quagga")[0] == "memory/new.md"
    assert open_then == [0]


# --- hits that hold ------------------------------------------------------------------------------


def test_a_file_that_changed_after_the_look_is_answered_from_its_new_text(
    memory: Memory, workspace: Path
) -> None:
    Disk(memory)
    memory.search("zebra")
    rewrite(workspace, "3.md", "The okapi took the place of number 3.")
    found = memory.search("zebra number 3", min_score=0.0)
    assert "zebra number 3" not in "".join(hit.snippet for hit in found.hits)
    assert found.due_files == 0


def test_a_file_that_was_deleted_after_the_look_is_not_cited(
    memory: Memory, workspace: Path
) -> None:
    Disk(memory)
    memory.search("zebra")
    (workspace / "memory" / "3.md").unlink()
    found = memory.search("zebra", min_score=0.0)
    assert {hit.path for hit in found.hits} == {f"memory/{number}.md" for number in (0, 1, 2, 4, 5)}
    assert found.due_files == 0


@pytest.fixture
def busy(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> Memory:
    """A memory whose index is locked by another process."""

    def refuse(parts: SyncParts, request: SyncRequest) -> SyncReport:
        raise IndexBusy("Another process is writing.", hint="Wait.")

    monkeypatch.setattr(run, "run_sync", refuse)
    return memory


@pytest.mark.parametrize("freshen", [True, False])
def test_hits_of_deleted_and_changed_text_are_dropped_when_the_index_is_busy(
    busy: Memory, workspace: Path, freshen: bool
) -> None:
    (workspace / "memory" / "3.md").unlink()
    rewrite(workspace, "4.md", "The okapi took the place of number 4.")
    found = busy.search("zebra", min_score=0.0, freshen=freshen)
    assert {hit.path for hit in found.hits} == {f"memory/{number}.md" for number in (0, 1, 2, 5)}
    assert found.due_files == 2


@pytest.mark.parametrize("freshen", [True, False])
def test_a_passage_that_moved_is_cited_with_its_current_lines(
    busy: Memory, workspace: Path, freshen: bool
) -> None:
    (before,) = [hit for hit in busy.search("zebra number 3").hits if hit.path == "memory/3.md"]
    text = (workspace / "memory" / "3.md").read_text(encoding="utf-8")
    rewrite(workspace, "3.md", "An entry that came later.\n\nAnd another.\n\n" + text)
    (after,) = [
        hit
        for hit in busy.search("zebra number 3", freshen=freshen).hits
        if hit.path == "memory/3.md"
    ]
    assert after.citation == f"memory/3.md#L{before.start_line + 4}-L{before.end_line + 4}"
    assert (after.snippet, after.snippet_start) == (before.snippet, before.snippet_start + 4)
    assert (
        after.snippet_ranges
        == tuple((first + 4, last + 4) for first, last in before.snippet_ranges)
        != ()
    )
    assert before.snippet in busy.read(after.citation).text


def test_when_every_match_is_gone_the_answer_says_that_indexing_is_behind(
    busy: Memory, workspace: Path
) -> None:
    for number in range(6):
        (workspace / "memory" / f"{number}.md").unlink()
    found = busy.search("zebra", min_score=0.0)
    assert (found.hits, found.due_files) == ((), 6)
    assert found.nothing is not None and found.nothing.code == "still-indexing"


def test_hits_of_a_folder_that_cannot_be_listed_are_kept(memory: Memory, workspace: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may list every folder")
    (workspace / "memory").chmod(0)
    try:
        assert len(paths(memory, "zebra")) == 6
    finally:
        (workspace / "memory").chmod(0o755)


def test_a_transcript_that_grew_is_still_cited_and_one_that_was_replaced_is_not(
    workspace: Path, embedder: SlowEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = workspace.parent / "state" / "agents" / workspace.name / "sessions"
    with opened(workspace, embedder, sessions=True) as memory:
        folder = Path(memory.places.sessions_dir)
        folder.mkdir(parents=True)
        line = (
            '{"type": "message", "message": {"role": "user", '
            '"content": "The heron nests by the pier."}}\n'
        )
        (folder / "s.jsonl").write_text(line, encoding="utf-8")
        memory.sync()
        with (folder / "s.jsonl").open("a", encoding="utf-8") as file:
            file.write(line.replace("heron", "egret"))
        assert "sessions/s.jsonl" in paths(memory, "heron", freshen=False)
        (folder / "other.jsonl").write_text(line.replace("heron", "egret"), encoding="utf-8")
        (folder / "other.jsonl").replace(folder / "s.jsonl")
        assert "sessions/s.jsonl" not in paths(memory, "heron", freshen=False)


# --- one count -----------------------------------------------------------------------------------


class StoppedEmbedder(HashingEmbedder):
    """Embeds a few texts, then fails."""

    left = 3

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        self.left -= len(texts)
        if self.left < 0:
            raise EmbeddingUnavailable("The model is away.", provider="test", hint="Wait.")
        return super().embed_texts(texts)


def test_search_and_status_count_the_same_due_files_and_vectors(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clawmark.engine.sync.vectors.INSTANT_BATCH", 2)
    monkeypatch.setattr("clawmark.engine.sync.vectors.FIRST_BATCH", 2)
    with opened(workspace, StoppedEmbedder()) as memory:
        for _ in range(2):
            found, status = memory.search("zebra"), memory.status()
            assert (
                (found.due_files, found.due_vectors)
                == (status.due_files, status.due_vectors)
                == (0, 4)
            )
            assert memory.sync().due_vectors == 4
