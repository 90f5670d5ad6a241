"""The QMD backend with the real QMD from npm: it keeps the contract, and cites exact lines."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from qmds import qmd_command, wrapper

from clawmark import Memory
from clawmark.backends.base import MemoryBackend
from clawmark.backends.fallback import FallbackBackend
from clawmark.backends.qmd.backend import QmdBackend
from clawmark.model.values import Skipped
from clawmark.testing import backend_contract

TEXT = "# 2026-02-24\n\nThe heron nests by the old pier.\nPostgreSQL keeps the invoices.\n"


def opened(workspace: Path, background: bool = False, **more: Any) -> Memory:
    qmd = {name.replace("_", "."): value for name, value in more.items()}
    patient = {"memory.qmd.limits.timeoutMs": 30_000, "memorySearch.provider": "none"}
    return Memory.open(
        workspace,
        state_dir=workspace.parent / "state",
        overrides={
            "memory.backend": "qmd",
            "memory.qmd.command": qmd_command(),
            **patient,
            **{f"memory.qmd.{name}": value for name, value in qmd.items()},
        },
        background=background,
    )


def backend_of(memory: Memory) -> QmdBackend:
    assert isinstance(memory._backend, FallbackBackend)
    primary = memory._backend.primary
    assert isinstance(primary, QmdBackend)
    return primary


def qmd_alone(workspace: Path) -> MemoryBackend:
    return backend_of(opened(workspace))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "2026-02-24.md").write_text(TEXT, encoding="utf-8")
    return folder


@pytest.fixture
def memory(workspace: Path) -> Iterator[Memory]:
    with opened(workspace) as memory:
        yield memory


def write(workspace: Path, path: str, text: str) -> None:
    (workspace / path).parent.mkdir(parents=True, exist_ok=True)
    (workspace / path).write_text(text, encoding="utf-8", newline="")


@pytest.mark.slow
def test_qmd_keeps_the_contract() -> None:
    backend_contract(qmd_alone)


@pytest.mark.slow
def test_qmd_with_its_fallback_keeps_the_contract() -> None:
    backend_contract(lambda workspace: opened(workspace)._backend)


def test_qmd_answers_and_no_other_index_is_made(memory: Memory, workspace: Path) -> None:
    found = memory.search("where does the heron nest?")
    assert [hit.citation for hit in found.hits] == ["memory/2026-02-24.md#L3-L4"]
    assert found.hits[0].snippet.startswith("The heron nests by the old pier.")
    assert (found.provider, found.fallback_from, found.degraded) == ("qmd", "", None)
    assert not list((workspace.parent / "state").glob("memory/*.sqlite"))
    assert memory.status().backend == "qmd"


def test_a_question_finds_files_that_have_some_of_its_words(
    memory: Memory, workspace: Path
) -> None:
    write(workspace, "memory/ospreys.md", "Ospreys eat fish.\n")
    found = memory.search("do the ospreys and herons share unicorns?")
    assert {hit.path for hit in found.hits} == {"memory/2026-02-24.md", "memory/ospreys.md"}
    assert all(hit.score < 0.5 for hit in found.hits)


def test_the_configured_minimum_score_is_not_applied_and_another_one_is(
    memory: Memory, workspace: Path
) -> None:
    text = "heron unicorn avalanche meteor"
    assert memory.settings.memory_search.query.min_score == 0.35
    (hit,) = memory.search(text).hits
    assert hit.score < 0.35
    nothing = memory.search(text, min_score=0.9).nothing
    assert nothing is not None and nothing.code == "below-threshold"


def test_a_file_that_qmd_saw_before_a_change_is_cited_by_its_current_lines(
    memory: Memory, workspace: Path
) -> None:
    memory.sync()
    write(workspace, "memory/2026-02-24.md", "# 2026-02-24\n\nNew first line.\n\n" + TEXT[14:])
    (hit,) = memory.search("heron", freshen=False).hits
    assert (hit.start_line, hit.end_line) == (5, 6)
    write(workspace, "memory/2026-02-24.md", "All of it is gone.\n")
    found = memory.search("heron", freshen=False)
    assert found.hits == () and found.due_files == 1


@pytest.mark.parametrize(
    "text",
    ["\ufeff# T\r\n\r\nThe bittern booms.\r\nDone.\r\n", "The bittern booms.", "  The bittern\t\n"],
    ids=["windows", "no line end", "indented"],
)
def test_lines_are_exact_in_every_kind_of_file(memory: Memory, workspace: Path, text: str) -> None:
    write(workspace, "memory/sub folder/Name (x).md", text)
    (hit,) = memory.search("bittern").hits
    cited = memory.read(hit.path, start=hit.start_line, lines=hit.end_line - hit.start_line + 1)
    assert hit.path == "memory/sub folder/Name (x).md"
    assert "bittern" in cited.text and cited.text.startswith(hit.snippet.split("\n")[0])


def test_a_link_out_of_the_workspace_is_never_cited(memory: Memory, workspace: Path) -> None:
    outside = workspace.parent / "outside"
    write(outside, "secret.md", "the capercaillie is secret\n")
    (workspace / "memory" / "link.md").symlink_to(outside / "secret.md")
    (workspace / "memory" / "linked").symlink_to(outside)
    write(workspace, "memory/.hidden/note.md", "a hidden capercaillie\n")
    assert memory.search("capercaillie").hits == ()


def test_rows_that_name_other_files_are_left_out(workspace: Path) -> None:
    agent = opened(workspace).places.agent_id
    rows = [
        {"docid": "#1", "score": 1, "file": file, "snippet": "@@ -1,1 @@ (0 before, 0 after)\nx"}
        for file in (
            f"qmd://memory-dir-{agent}/../../outside/secret.md",
            f"qmd://memory-dir-{agent}//etc/passwd",
            "qmd://elsewhere/memory/2026-02-24.md",
            f"qmd://memory-root-{agent}/AGENTS.md",
        )
    ]
    answer = workspace.parent / "answer.json"
    answer.write_text(json.dumps(rows), encoding="utf-8")
    script = f'case "$1" in search|query) cat "{answer}";; *) exec "$QMD" "$@";; esac'
    command = wrapper(workspace.parent, script)
    write(workspace.parent / "outside", "secret.md", "x\n")
    write(workspace, "AGENTS.md", "x\n")
    with opened(workspace, command=command) as memory:
        found = memory.search("x-ray")
        assert found.hits == () and found.fallback_from == ""


def test_filters_are_respected(memory: Memory, workspace: Path) -> None:
    write(workspace, "memory/2026-03-01.md", "The heron left.\n")
    write(workspace, "memory/birds/heron.md", "The heron is grey.\n")
    write(workspace, "MEMORY.md", "- heron\n")

    def paths(**filters: str) -> set[str]:
        return {hit.path for hit in memory.search("heron", **filters).hits}  # type: ignore[arg-type]

    assert paths(since="2026-02-25") == {"memory/2026-03-01.md"}
    assert paths(until="2026-02-24") == {"memory/2026-02-24.md"}
    assert paths(path="memory/birds/**") == {"memory/birds/heron.md"}
    assert paths(source="memory") >= {"MEMORY.md", "memory/birds/heron.md"}
    nothing = memory.search("heron", path="memory/none/**").nothing
    assert nothing is not None and nothing.code == "filtered-out"


def test_added_folders_and_extra_paths_are_collections(workspace: Path) -> None:
    wiki, extra = workspace.parent / "wiki", workspace.parent / "extra"
    write(wiki, "birds.md", "The stork is white.\n")
    write(extra, "public/birds.md", "The crane is grey.\n")
    write(extra, "private/birds.md", "The crane is secret.\n")
    paths = [{"path": str(extra), "name": "Extra Docs", "pattern": "public/**/*.md"}]
    with opened(workspace, paths=paths) as memory:
        memory.add_source(wiki)
        assert [hit.path for hit in memory.search("stork").hits] == ["wiki:birds.md"]
        assert [hit.path for hit in memory.search("crane").hits] == ["../extra/public/birds.md"]
        names = [one.name for one in backend_of(memory).indexer.collections()]
        wanted = ("memory-root", "memory-dir", "extra-docs", "wiki")
        assert names == [f"{name}-{memory.places.agent_id}" for name in wanted]
        memory.remove_source("wiki")
        assert memory.search("stork").hits == ()


def test_a_collection_is_bound_again_when_its_folder_or_pattern_changes(workspace: Path) -> None:
    extra = workspace.parent / "extra"
    write(extra, "a/birds.md", "The crane is grey.\n")
    write(extra, "b/birds.md", "The stork is white.\n")
    for pattern, word in (("a/*.md", "crane"), ("b/*.md", "stork")):
        paths = [{"path": str(extra), "name": "extra", "pattern": pattern}]
        with opened(workspace, paths=paths) as memory:
            assert len(memory.search(word).hits) == 1
    with opened(workspace, paths=paths) as memory:
        assert memory.search("crane").hits == ()


def test_the_index_is_made_again_when_it_is_deleted(memory: Memory, workspace: Path) -> None:
    memory.sync()
    shutil.rmtree(workspace.parent / "state" / "qmd" / memory.places.agent_id / "xdg-cache")
    assert memory.status().due_files == 1
    assert len(memory.search("heron").hits) == 1


def test_files_of_a_folder_that_was_empty_at_the_last_sync_are_found(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    write(workspace, "MEMORY.md", "The heron nests.\n")
    with opened(workspace) as memory:
        memory.sync()
        (workspace / "memory").mkdir()
        memory.sync()
        write(workspace, "memory/birds.md", "The bittern booms.\n")
        assert [hit.path for hit in memory.search("bittern").hits] == ["memory/birds.md"]


def test_files_that_qmd_does_not_index_are_reported_as_skipped(
    memory: Memory, workspace: Path
) -> None:
    write(workspace, "memory/build/birds.md", "The bittern booms.\n")
    write(workspace.parent / "build", "birds.md", "The bittern is brown.\n")
    memory.add_source(workspace.parent / "build", name="wiki")
    assert [hit.path for hit in memory.search("bittern").hits] == ["wiki:birds.md"]
    skipped = Skipped("memory/build/birds.md", "QMD ignores folders called build")
    assert memory.sync().skipped == (skipped,)
    status = memory.status()
    assert status.skipped == (skipped,) and (status.files, status.due_files) == (2, 0)


def test_images_are_reported_as_skipped(workspace: Path) -> None:
    write(workspace.parent / "extra", "birds.md", "The bittern booms.\n")
    (workspace.parent / "extra" / "heron.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 40)
    settings = {
        "memory.backend": "qmd",
        "memory.qmd.command": qmd_command(),
        "memorySearch.extraPaths": [str(workspace.parent / "extra")],
        "memorySearch.multimodal.enabled": True,
        "memorySearch.provider": "gemini",
        "memorySearch.model": "gemini-embedding-2",
        "memorySearch.remote.apiKey": "key-of-a-test",
    }
    state = workspace.parent / "state"
    with Memory.open(workspace, state_dir=state, overrides=settings, background=False) as memory:
        report = memory.sync()
        assert report.added == 2 and report.degraded is None
        assert report.skipped == (Skipped("../extra/heron.png", "QMD indexes Markdown only"),)


def test_the_workspaces_own_memory_can_be_left_out(workspace: Path) -> None:
    write(workspace.parent / "extra", "birds.md", "The heron is an extra.\n")
    paths = [{"path": str(workspace.parent / "extra")}]
    with opened(workspace, paths=paths, includeDefaultMemory=False) as memory:
        assert [hit.path for hit in memory.search("heron").hits] == ["../extra/birds.md"]


def test_limits_of_the_answer_are_kept(workspace: Path) -> None:
    for number in range(5):
        write(workspace, f"memory/n{number}.md", f"heron {number} {'long ' * 100}\n")
    with opened(workspace, limits_maxResults=3, limits_maxSnippetChars=50) as memory:
        hits = memory.search("heron", max_results=10).hits
        assert len(hits) == 3 and all(len(hit.snippet) <= 50 for hit in hits)
    with opened(workspace, limits_maxInjectedChars=60, limits_maxSnippetChars=50) as memory:
        hits = memory.search("heron", max_results=10).hits
        assert sum(len(hit.snippet) for hit in hits) <= 60 and len(hits) == 2


def test_a_long_line_is_cited_although_qmd_shows_only_its_beginning(
    memory: Memory, workspace: Path
) -> None:
    lines = ["# Long", "", f"The bittern {'booms ' * 200}", "second", "third", "fourth"]
    write(workspace, "memory/long.md", "\n".join(lines))
    (hit,) = memory.search("bittern").hits
    assert (hit.start_line, hit.end_line) == (3, 5)
    assert hit.snippet.startswith("The bittern booms") and len(hit.snippet) <= 700


def test_a_word_deep_in_a_long_file_is_cited_where_it_is(memory: Memory, workspace: Path) -> None:
    lines = [f"Line {number} is about {'something ' * 9}" for number in range(1, 1000)]
    lines[700] = "Here the bittern booms."
    write(workspace, "memory/long.md", "\n".join(lines))
    for question in ("bittern", "where does the bittern boom?"):
        hit = memory.search(question).hits[0]
        assert hit.start_line <= 701 <= hit.end_line and "bittern" in hit.snippet


def test_folders_of_memory_search_are_searched_too(workspace: Path) -> None:
    write(workspace.parent / "extra", "birds.md", "The crane is grey.\n")
    config = {
        "memory": {"backend": "qmd", "qmd": {"command": qmd_command()}},
        "memorySearch": {
            "provider": "none",
            "qmd": {"extraCollections": [{"path": str(workspace.parent / "extra")}]},
        },
    }
    file = workspace.parent / "clawmark.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    state = workspace.parent / "state"
    with Memory.open(workspace, config=file, state_dir=state, background=False) as memory:
        assert [hit.path for hit in memory.search("crane").hits] == ["../extra/birds.md"]
