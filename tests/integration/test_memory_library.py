"""The library as a developer uses it: real files, a real index, a deterministic embedder."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.embed.local.weights import has_numpy
from clawmark.engine.sync import run
from clawmark.engine.sync.scan import SyncParts, SyncRequest
from clawmark.model.errors import PathDenied
from clawmark.model.reports import SyncReport
from clawmark.model.values import Vector
from clawmark.testing import HashingEmbedder, UnreliableEmbedder


class StrangeEmbedder(HashingEmbedder):
    """Fails as a user's own code may fail: with any exception of its driver, or with no vector at
    all.
    """

    failure: Exception | None = None
    closed = False

    def embed_query(self, text: str) -> Vector:
        if self.failure is not None:
            raise self.failure
        return super().embed_query(text)

    def close(self) -> None:
        self.closed = True


class CountingEmbedder(HashingEmbedder):
    """Counts the texts it was asked to embed."""

    def __init__(self) -> None:
        super().__init__(dims=64)
        self.texts: list[str] = []

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        self.texts.extend(texts)
        return super().embed_texts(texts)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "agent"
    (root / "memory").mkdir(parents=True)
    (root / "MEMORY.md").write_text("# Memory\n\n- Ana prefers tea in the morning.\n")
    (root / "memory" / "2026-02-24.md").write_text(
        "# 2026-02-24\n\n- We chose PostgreSQL for billing.\n"
    )
    (root / "memory" / "2026-02-25.md").write_text(
        "# 2026-02-25\n\n- The heron nests by the harbour.\n"
    )
    return root


@pytest.fixture
def embedder() -> CountingEmbedder:
    return CountingEmbedder()


@pytest.fixture
def memory(workspace: Path, tmp_path: Path, embedder: CountingEmbedder) -> Iterator[Memory]:
    with Memory.open(
        workspace,
        state_dir=tmp_path / "state",
        embedder=embedder,
        clock=lambda: datetime(2026, 11, 15, 9, 30),
    ) as opened:
        yield opened


def test_the_first_search_indexes_and_answers_with_a_citation(memory: Memory) -> None:
    found = memory.search("PostgreSQL billing")
    assert found.hits[0].citation.startswith("memory/2026-02-24.md#L")
    assert "PostgreSQL for billing" in found.hits[0].snippet


def test_a_write_of_this_process_is_found_by_its_next_search_even_right_after_a_look(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in a large workspace, where a look is expensive.
    monkeypatch.setattr("clawmark.backends.freshening.EXPENSIVE_FACTOR", 1_000_000)
    monkeypatch.setattr("clawmark.backends.freshening.CHEAP_FACTOR", 1_000_000)
    memory.search("kingfisher")
    memory.append("The kingfisher is back.")
    assert memory.search("kingfisher").hits[0].path == "memory/2026-11-15.md"
    exact = memory.workspace.read_exact("memory/2026-11-15.md")
    assert exact is not None
    memory.replace("memory/2026-11-15.md", "# 2026-11-15\n\n- The bittern is back.\n", exact.hash)
    assert "bittern" in memory.search("bittern").hits[0].snippet
    memory.workspace.rename("memory/2026-11-15.md", "memory/birds.md")
    assert memory.search("bittern").hits[0].path == "memory/birds.md"
    memory.workspace.delete("memory/birds.md")
    assert "memory/birds.md" not in [hit.path for hit in memory.search("bittern", min_score=0).hits]


def test_a_note_is_found_by_the_next_search(memory: Memory) -> None:
    memory.sync()
    written = memory.append("Redis replaces memcached for sessions")
    assert written.path == "memory/2026-11-15.md"
    hit = memory.search("memcached sessions").hits[0]
    assert hit.path == written.path
    assert hit.start_line <= written.start_line <= hit.end_line


def test_files_that_another_search_is_indexing_are_reported_as_due(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.search("billing")
    memory.append("Redis replaces memcached for sessions")
    begun, check_cancelled, original = threading.Event(), threading.Event(), run.run_sync

    def held_up(parts: SyncParts, request: SyncRequest) -> SyncReport:
        begun.set()
        assert check_cancelled.wait(60)
        return original(parts, request)

    monkeypatch.setattr(run, "run_sync", held_up)
    other = threading.Thread(target=memory.search, args=("memcached",))
    other.start()
    assert begun.wait(60)
    assert memory.search("memcached").due_files == 1
    check_cancelled.set()
    other.join()
    found = memory.search("memcached")
    assert (found.due_files, found.hits[0].path) == (0, "memory/2026-11-15.md")


def test_a_note_for_memory_md_is_added_there(memory: Memory) -> None:
    written = memory.append("The vault key is with Priya", to="MEMORY.md")
    assert written.path == "MEMORY.md"
    assert "with Priya" in memory.read("MEMORY.md", start=written.start_line, lines=1).text


def test_an_edited_file_is_answered_from_its_new_text(memory: Memory, workspace: Path) -> None:
    memory.sync()
    (workspace / "memory" / "2026-02-24.md").write_text(
        "# 2026-02-24\n\n- We chose MariaDB for billing after all.\n"
    )
    assert "MariaDB" in memory.search("billing").hits[0].snippet
    assert not [hit for hit in memory.search("PostgreSQL").hits if "PostgreSQL" in hit.snippet]


def test_a_deleted_file_leaves_no_trace_in_the_index(
    memory: Memory, workspace: Path, tmp_path: Path
) -> None:
    memory.sync()
    (workspace / "memory" / "2026-02-25.md").unlink()
    report = memory.sync()
    assert report.deleted == 1
    assert not [
        hit for hit in memory.search("heron harbour", min_score=0).hits if "heron" in hit.snippet
    ]
    memory.close()
    for name in os.listdir(tmp_path / "state" / "memory"):
        assert b"heron nests" not in (tmp_path / "state" / "memory" / name).read_bytes()


def test_renamed_text_is_not_embedded_again(
    memory: Memory, workspace: Path, embedder: CountingEmbedder
) -> None:
    memory.sync()
    embedder.texts.clear()
    (workspace / "memory" / "2026-02-25.md").rename(workspace / "memory" / "birds.md")
    report = memory.sync()
    assert (report.added, report.deleted) == (1, 1)
    assert embedder.texts == []
    assert memory.search("heron harbour").hits[0].path == "memory/birds.md"


def test_a_sync_without_changes_does_nothing(
    memory: Memory, embedder: CountingEmbedder, tmp_path: Path
) -> None:
    memory.sync()
    embedder.texts.clear()
    before = (tmp_path / "state" / "memory").stat().st_mtime_ns
    report = memory.sync()
    assert (report.added, report.updated, report.deleted, report.unchanged) == (0, 0, 0, 3)
    assert embedder.texts == []
    assert (tmp_path / "state" / "memory").stat().st_mtime_ns == before


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may list any folder")
def test_files_of_a_folder_that_cannot_be_listed_stay_indexed(
    memory: Memory, workspace: Path
) -> None:
    memory.sync()
    (workspace / "memory").chmod(0)
    try:
        report = memory.sync()
        assert report.scan_failures
        assert report.deleted == 0
        assert memory.search("PostgreSQL billing").hits
    finally:
        (workspace / "memory").chmod(0o755)


def test_files_of_a_workspace_that_is_gone_stay_indexed(memory: Memory, workspace: Path) -> None:
    memory.sync()
    workspace.rename(workspace.with_name("elsewhere"))
    report = memory.sync()
    assert report.scan_failures
    assert report.deleted == 0
    assert memory.search("PostgreSQL billing").hits


def test_force_builds_the_next_generation_and_answers_the_same(
    memory: Memory, embedder: CountingEmbedder
) -> None:
    first = memory.sync()
    before = memory.search("PostgreSQL billing").hits
    embedder.texts.clear()
    report = memory.sync(force=True)
    assert report.generation == first.generation + 1
    assert embedder.texts == [], "every vector comes from the cache"
    assert memory.search("PostgreSQL billing").hits == before
    assert memory.verify().problems == ()


def test_another_chunker_starts_a_rebuild(workspace: Path, tmp_path: Path) -> None:
    state, embedder = tmp_path / "state", HashingEmbedder(dims=64)
    with Memory.open(workspace, state_dir=state, embedder=embedder) as memory:
        memory.sync()
    lines = {"memorySearch.chunking.mode": "lines"}
    with Memory.open(workspace, state_dir=state, embedder=embedder, overrides=lines) as memory:
        report = memory.sync()
        assert report.chunks > 0
        assert memory.verify().problems == ()
        assert memory.search("PostgreSQL billing").hits


def test_a_rebuild_is_planned_reported_and_counted(workspace: Path, tmp_path: Path) -> None:
    def opened(tokens: int) -> Memory:
        overrides = {"memorySearch.chunking.tokens": tokens, "memorySearch.chunking.overlap": 0}
        return Memory.open(
            workspace, state_dir=tmp_path / "s", embedder=HashingEmbedder(), overrides=overrides
        )

    with opened(400) as memory:
        memory.sync()
        assert memory.plan()[0].due == 0
        assert len(memory.plan(force=True)[0].add) == 3
    with opened(8) as memory:
        plan, _ = memory.plan()
        assert (len(plan.add), plan.unchanged) == (3, 0)
        status = memory.status()
        assert status.degraded is not None
        assert "other chunking settings" in status.degraded.reason
        report = memory.sync()
        assert (report.added, report.unchanged) == (3, 0)
        assert report.embedded + report.reused == report.chunks, (
            "also those of before the new generation was published"
        )
        assert memory.plan()[0].due == 0
        assert memory.status().degraded is None


def test_every_empty_answer_says_why(memory: Memory, tmp_path: Path) -> None:
    def code(text: str, **options: float) -> str:
        nothing = memory.search(text, **options).nothing  # type: ignore[arg-type]
        return nothing.code if nothing else "found"

    assert code("   ") == "empty-query"
    assert code("xylophone quasar", min_score=0.99) in ("below-threshold", "no-such-words")
    assert code("zebra postgresql lantern quartz", min_score=1.0) == "below-threshold"
    empty = tmp_path / "empty"
    empty.mkdir()
    with Memory.open(empty, state_dir=tmp_path / "state2", embedder=HashingEmbedder()) as fresh:
        nothing = fresh.search("anything").nothing
        assert nothing is not None
        assert nothing.code == "empty-index"


def test_an_empty_answer_has_an_explanation_only_on_request(memory: Memory, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with Memory.open(empty, state_dir=tmp_path / "state2", embedder=HashingEmbedder()) as fresh:
        for asked, text in ((memory, "   "), (fresh, "anything")):
            assert asked.search(text).explanation is None
            assert asked.search(text, explain=True).explanation is not None


@pytest.mark.parametrize("fault", ["down", "nan", "zero", "short"])
def test_keywords_answer_when_the_embedder_fails(
    workspace: Path, tmp_path: Path, fault: str
) -> None:
    embedder = UnreliableEmbedder()
    with Memory.open(
        workspace, state_dir=tmp_path / "state", embedder=embedder, background=False
    ) as memory:
        memory.sync()
        embedder.fault = fault  # type: ignore[assignment]
        found = memory.search("PostgreSQL billing")
        assert found.mode == "fts-only"
        assert "PostgreSQL" in found.hits[0].snippet
        assert found.degraded is not None
        memory.append("Redis replaces memcached for sessions")
        assert memory.sync().due_vectors > 0
        embedder.fault = ""
        assert memory.sync().due_vectors == 0
        assert memory.search("memcached sessions").mode == "hybrid"


def test_exceptions_of_a_given_embedder_do_not_fail_a_search_or_a_sync(
    workspace: Path, tmp_path: Path
) -> None:
    embedder = StrangeEmbedder()
    with Memory.open(
        workspace, state_dir=tmp_path / "state", embedder=embedder, background=False
    ) as memory:
        memory.sync()
        embedder.failure = ConnectionError("no route to host")
        found = memory.search("PostgreSQL billing")
        assert "PostgreSQL" in found.hits[0].snippet
        assert found.degraded is not None
        assert (
            found.degraded.reason
            == "The embedder StrangeEmbedder failed (ConnectionError: no route to host)."
        )
        memory.append("Redis replaces memcached for sessions")
        report = memory.sync()
        assert report.degraded == found.degraded
        assert report.due_vectors > 0
    assert embedder.closed


def test_without_an_embedder_unknown_words_are_reported(workspace: Path, tmp_path: Path) -> None:
    with Memory.open(
        workspace, state_dir=tmp_path / "s", overrides={"memorySearch.provider": "none"}
    ) as memory:
        nothing = memory.search("xylophone quasar").nothing
        assert nothing is not None
        assert nothing.code == "no-such-words"
        assert memory.search("PostgreSQL").mode == "fts-only"


def test_a_below_threshold_answer_names_the_best_score(memory: Memory) -> None:
    nothing = memory.search("postgresql lantern quartz umbrella", min_score=1.0).nothing
    assert nothing is not None
    assert nothing.best_score is not None
    assert 0 < nothing.best_score < 1


def test_a_match_of_every_word_always_passes_the_threshold(memory: Memory) -> None:
    assert memory.search("heron nests harbour", min_score=1.0).hits


def test_the_explanation_accounts_for_every_step_and_candidate(memory: Memory) -> None:
    explanation = memory.search("PostgreSQL billing", explain=True).explanation
    assert explanation is not None
    assert [step.number for step in explanation.steps] == list(range(1, 10))
    assert explanation.candidates[0].outcome == "hit 1"
    assert all(story.outcome for story in explanation.candidates)
    assert explanation.passages == memory.status().chunks


def test_reading_is_bounded_and_guarded(memory: Memory, workspace: Path) -> None:
    (workspace / "memory" / "long.md").write_text("\n".join(f"line {n}" for n in range(1, 400)))
    excerpt = memory.read("memory/long.md")
    assert (excerpt.lines, excerpt.truncated, excerpt.next_start) == (120, True, 121)
    with pytest.raises(PathDenied):
        memory.read("../outside.md")
    assert memory.read("memory/2031-01-01.md").text == ""


def test_a_read_only_search_sees_a_whole_generation_while_another_memory_rebuilds(
    memory: Memory, workspace: Path, tmp_path: Path
) -> None:
    memory.sync()
    seen = []

    def look(_: object) -> None:
        with Memory.open(
            workspace, state_dir=tmp_path / "state", embedder=HashingEmbedder(dims=64)
        ) as other:
            seen.append(
                len(other.search("memory chose heron tea", min_score=0, freshen=False).hits)
            )

    memory.sync(force=True, progress=look)
    assert seen
    assert len(set(seen)) == 1


def test_verify_finds_a_row_that_differs_from_its_file(memory: Memory, tmp_path: Path) -> None:
    import apsw

    from clawmark.store.sqlite.db import checking_vfs

    memory.sync()
    memory.close()
    (path,) = [str(p) for p in (tmp_path / "state" / "memory").glob("*.sqlite")]
    database = apsw.Connection(
        path, vfs=checking_vfs()
    )  # with right checksums, as a fault of our own would write it
    database.execute("UPDATE chunks SET text = replace(text, 'PostgreSQL', 'Oracle')")
    database.close()
    with Memory.open(
        memory.places.workspace, state_dir=tmp_path / "state", embedder=HashingEmbedder(dims=64)
    ) as again:
        assert any("2026-02-24" in problem for problem in again.verify().problems)


def test_doctor_replaces_a_damaged_index(memory: Memory, tmp_path: Path) -> None:
    memory.sync()
    memory.close()
    (path,) = (tmp_path / "state" / "memory").glob("*.sqlite")
    path.write_bytes(b"this is not a database" * 1000)
    with Memory.open(
        memory.places.workspace, state_dir=tmp_path / "state", embedder=HashingEmbedder(dims=64)
    ) as again:
        assert any(f.level == "problem" and not f.fixed for f in again.doctor())
        assert any(f.fixed for f in again.doctor(fix=True))
        assert again.search("PostgreSQL billing").hits


def test_the_tools_answer_with_citations(memory: Memory) -> None:
    search, get = memory.tools()
    payload = search.call({"query": "PostgreSQL billing"})
    first = payload["results"][0]  # type: ignore[index]
    text = get.call({"path": first["path"], "from": first["startLine"], "lines": 5})
    assert "PostgreSQL" in str(text["text"])


@pytest.mark.skipif(not has_numpy(), reason="numpy is not installed")
def test_the_first_search_of_a_small_memory_has_the_best_vectors(
    workspace: Path, tmp_path: Path
) -> None:
    with Memory.open(workspace, state_dir=tmp_path / "s", provider="default") as memory:
        found = memory.search("which database did we pick?")
        assert found.provider == "local"
        assert "PostgreSQL" in found.hits[0].snippet


def test_the_report_of_a_failed_provider_says_what_a_fallback_would_cost(
    workspace: Path, tmp_path: Path
) -> None:
    nobody_listens = {
        "memorySearch.remote.baseUrl": "http://127.0.0.1:9/v1",
        "memorySearch.remote.apiKey": "not-a-key",
    }
    settings = {"memorySearch.provider": "openai", **nobody_listens}
    with Memory.open(workspace, state_dir=tmp_path / "s", overrides=settings) as memory:
        degraded = memory.sync().degraded
        assert degraded is not None
        assert 'memorySearch.fallback "local" 3 passages would be embedded' in degraded.fix
        assert memory.search("PostgreSQL billing").hits, "words answer all the same"
        assert any("failed a moment ago" in finding.what for finding in memory.doctor())
