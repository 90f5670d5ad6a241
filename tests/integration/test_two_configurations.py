"""Two configurations of one agent, with and without transcripts, share an index and leave each
other's files in it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.model.values import Vector
from clawmark.store.sqlite.transaction import SqliteTransaction
from clawmark.testing import HashingEmbedder

BOTH, NOTES, TALKS = ["memory", "sessions"], ["memory"], ["sessions"]


class CountingEmbedder(HashingEmbedder):
    """Remembers the texts it was asked to embed."""

    def __init__(self) -> None:
        super().__init__(dims=64)
        self.texts: list[str] = []

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        self.texts.extend(texts)
        return super().embed_texts(texts)


@pytest.fixture
def embedder() -> CountingEmbedder:
    return CountingEmbedder()


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    folder = tmp_path / "agent" / "memory"
    folder.mkdir(parents=True)
    for number in range(3):
        (folder / f"{number}.md").write_text(
            f"The zebra number {number} is striped.\n", encoding="utf-8"
        )
    with Memory.open(folder.parent, state_dir=tmp_path / "state") as memory:
        sessions = Path(memory.places.sessions_dir)
    sessions.mkdir(parents=True)
    for number in range(4):
        message = {
            "role": "user",
            "content": f"The heron of talk {number} nests by the private pier.",
        }
        line = json.dumps(
            {"type": "message", "timestamp": "2026-02-24T10:00:00Z", "message": message}
        )
        (sessions / f"{number}.jsonl").write_text(line + "\n", encoding="utf-8")
    return folder.parent


def opened(agent: Path, sources: list[str], embedder: HashingEmbedder | None = None) -> Memory:
    settings: dict[str, object] = {"memorySearch.sources": sources}
    if embedder is None:
        settings["memorySearch.provider"] = "none"
    return Memory.open(
        agent,
        state_dir=agent.parent / "state",
        embedder=embedder,
        overrides=settings,
        background=False,
    )


def paths(memory: Memory, query: str) -> set[str]:
    return {hit.path for hit in memory.search(query, min_score=0.0, max_results=50).hits}


TALK_PATHS = {f"sessions/{number}.jsonl" for number in range(4)}
NOTE_PATHS = {f"memory/{number}.md" for number in range(3)}


def test_files_of_a_source_that_is_off_are_kept_but_not_found(
    agent: Path, embedder: CountingEmbedder
) -> None:
    with opened(agent, BOTH, embedder) as memory:
        memory.sync()
        assert paths(memory, "heron pier") & TALK_PATHS == TALK_PATHS
    with opened(agent, NOTES, embedder) as memory:
        assert memory.plan()[0].due == 0
        assert memory.sync().deleted == 0
        assert not paths(memory, "heron private pier talk") - NOTE_PATHS
        assert memory.search("heron").due_files == 0
        assert memory.verify().problems == ()
    made = len(embedder.texts)
    with opened(agent, BOTH, embedder) as memory:
        assert memory.plan()[0].due == 0
        assert paths(memory, "heron pier") & TALK_PATHS == TALK_PATHS
        memory.sync()
        assert len(embedder.texts) == made, "nothing is embedded twice"
        assert memory.verify().problems == ()


def test_the_other_way_round_notes_are_kept_but_not_found(
    agent: Path, embedder: CountingEmbedder
) -> None:
    with opened(agent, BOTH, embedder) as memory:
        memory.sync()
    with opened(agent, TALKS, embedder) as memory:
        assert memory.sync().deleted == 0
        assert paths(memory, "zebra striped") <= TALK_PATHS
    with opened(agent, BOTH, embedder) as memory:
        assert memory.plan()[0].due == 0
        assert paths(memory, "zebra striped") & NOTE_PATHS == NOTE_PATHS


def test_status_counts_what_is_searched_and_says_what_is_not(
    agent: Path, embedder: CountingEmbedder
) -> None:
    with opened(agent, BOTH) as memory:
        memory.sync()
        assert (memory.status().files, memory.status().unsearched_files) == (7, 0)
    with opened(agent, NOTES, embedder) as memory:
        memory.sync()
        status = memory.status()
        assert (status.files, status.chunks, status.unsearched_files) == (3, 3, 4)
        assert (status.due_files, status.due_vectors) == (0, 0)


def test_text_of_a_source_that_is_off_is_not_embedded(
    agent: Path, embedder: CountingEmbedder
) -> None:
    with opened(agent, BOTH) as memory:
        memory.sync()
    with opened(agent, NOTES, embedder) as memory:
        memory.search("zebra")
        memory.sync()
    assert embedder.texts and not [text for text in embedder.texts if "heron" in text]


def test_an_index_that_does_not_say_which_sources_it_holds_hides_them_all_the_same(
    agent: Path,
) -> None:
    with opened(agent, BOTH) as memory:
        memory.sync()
        with memory._builtin.parts.store.transaction() as writer:
            assert isinstance(writer, SqliteTransaction)
            writer.db.rows("DELETE FROM meta WHERE key = 'sources'")
    with opened(agent, NOTES) as memory:
        assert not paths(memory, "heron private pier talk")
        assert memory.status().unsearched_files == 4


def test_a_forced_index_removes_the_text_of_a_source_that_is_off(agent: Path) -> None:
    with opened(agent, BOTH) as memory:
        memory.sync()
    with opened(agent, NOTES) as memory:
        assert set(memory.plan(force=True)[0].delete) == TALK_PATHS
        assert memory.sync(force=True).deleted == 4
        assert memory.status().unsearched_files == 0
        assert memory.verify().problems == ()
    for file in (agent.parent / "state" / "memory").iterdir():
        assert b"private pier" not in file.read_bytes()
    with opened(agent, BOTH) as memory:
        assert memory.sync().added == 4


def test_a_folder_of_transcripts_that_is_lost_keeps_its_files_after_a_sync_without_them(
    agent: Path,
) -> None:
    with opened(agent, BOTH) as memory:
        memory.sync()
        sessions = Path(memory.places.sessions_dir)
    with opened(agent, NOTES) as memory:
        (agent / "memory" / "new.md").write_text("The quagga is extinct.\n", encoding="utf-8")
        memory.sync()
    sessions.rename(sessions.with_name("unmounted"))
    sessions.mkdir()
    with opened(agent, BOTH) as memory:
        report = memory.sync()
        assert report.deleted == 0 and report.scan_failures
