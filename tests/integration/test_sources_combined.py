"""Added folders together with the check of hits against the disk, with filters, and with
transcripts on and off.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from commands import Place, new_place

from clawmark import Memory
from clawmark.model.errors import ConfigError
from clawmark.model.values import Found

BOTH, NOTES = ["memory", "sessions"], ["memory"]


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    folder = tmp_path / "agent"
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "2026-02-24.md").write_text(
        "The heron nests by the lake.\n", encoding="utf-8"
    )
    return folder


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "projects").mkdir(parents=True)
    (folder / "ferry.md").write_text("The ferry passes the heron at nine.\n", encoding="utf-8")
    (folder / "projects" / "2026-03-04-zebra.md").write_text(
        "The heron project ships in May.\n", encoding="utf-8"
    )
    return folder


def opened(agent: Path, sources: list[str] | None = None) -> Memory:
    settings = {"memorySearch.provider": "none", "memorySearch.sources": sources or NOTES}
    return Memory.open(
        agent, state_dir=agent.parent / "state", overrides=settings, background=False
    )


@pytest.fixture
def memory(agent: Path, notes: Path) -> Iterator[Memory]:
    with opened(agent) as made:
        made.add_source(notes, name="notes")
        made.sync()
        yield made


def paths(found: Found) -> set[str]:
    return {hit.path for hit in found.hits}


def filtered(memory: Memory, **filters: str) -> set[str]:
    return paths(memory.search("heron", min_score=0.0, max_results=50, **filters))  # type: ignore[arg-type]


ALL = {"memory/2026-02-24.md", "notes:ferry.md", "notes:projects/2026-03-04-zebra.md"}


# --- hits and the disk ----------------------------------------------------------------------------


@contextmanager
def busy(memory: Memory) -> Iterator[None]:
    """While another process is writing to the index, a search cannot bring it up to date."""
    with memory._builtin.parts.store.transaction():
        yield


def test_a_hit_of_an_added_folder_is_answered_from_its_new_text(
    memory: Memory, notes: Path
) -> None:
    memory.search("heron")
    (notes / "ferry.md").write_text(
        "Timetable\n\nThe ferry passes the osprey at ten.\n", encoding="utf-8"
    )
    found = memory.search("ferry")
    assert "osprey" in found.hits[0].snippet and found.due_files == 0


def test_a_hit_of_a_file_deleted_from_an_added_folder_is_not_shown(
    memory: Memory, notes: Path
) -> None:
    memory.search("heron")
    (notes / "ferry.md").unlink()
    assert "notes:ferry.md" not in paths(memory.search("heron"))


def test_a_passage_that_moved_in_an_added_folder_is_cited_where_it_stands_now(
    memory: Memory, notes: Path
) -> None:
    with busy(memory):
        (notes / "ferry.md").write_text(
            "# Timetable\n\nThe ferry passes the heron at nine.\n", encoding="utf-8"
        )
        (hit,) = memory.search("ferry").hits
    assert hit.citation == "notes:ferry.md#L3"
    assert memory.read(hit.citation).text == "The ferry passes the heron at nine."


def test_what_is_gone_from_an_added_folder_is_left_out_while_the_index_is_busy(
    memory: Memory, notes: Path
) -> None:
    with busy(memory):
        (notes / "ferry.md").unlink()
        found = memory.search("heron")
    assert paths(found) == ALL - {"notes:ferry.md"} and found.due_files == 1


def test_hits_of_a_removed_source_are_not_shown_while_the_index_is_busy(memory: Memory) -> None:
    with busy(memory):
        memory.remove_source("notes")
        assert paths(memory.search("heron")) == {"memory/2026-02-24.md"}
        assert paths(memory.search("heron", freshen=False)) == {"memory/2026-02-24.md"}


def test_a_source_that_another_process_removes_is_not_shown_a_moment_later(
    memory: Memory, agent: Path
) -> None:
    memory.search("heron")
    with opened(agent) as other:
        other.remove_source("notes")
    memory._builtin.freshener.clock = lambda: time.monotonic() + 10
    assert paths(memory.search("heron")) == {"memory/2026-02-24.md"}


def test_a_removed_source_leaves_no_text_in_the_index(memory: Memory, agent: Path) -> None:
    memory.remove_source("notes")
    memory.sync()
    assert memory.status().files == 1 and memory.verify().problems == ()
    memory.close()
    for file in (agent.parent / "state" / "memory").iterdir():
        assert b"passes the heron" not in file.read_bytes(), file


def test_hits_of_an_added_folder_that_is_away_are_kept(memory: Memory, notes: Path) -> None:
    notes.rename(notes.with_name("unmounted"))
    assert paths(memory.search("heron")) == ALL


# --- filters --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("notes:**", {"notes:ferry.md", "notes:projects/2026-03-04-zebra.md"}),
        ("notes:", {"notes:ferry.md", "notes:projects/2026-03-04-zebra.md"}),
        ("notes:*.md", {"notes:ferry.md"}),
        ("notes:ferry.md", {"notes:ferry.md"}),
        ("notes:projects/", {"notes:projects/2026-03-04-zebra.md"}),
        ("notes:**/*-zebra.md", {"notes:projects/2026-03-04-zebra.md"}),
        ("*:projects/*", {"notes:projects/2026-03-04-zebra.md"}),
        ("ferry.md", {"notes:ferry.md"}),
        ("2026-*.md", {"memory/2026-02-24.md", "notes:projects/2026-03-04-zebra.md"}),
        ("memory/**", {"memory/2026-02-24.md"}),
        ("projects/**", set()),
        ("**", ALL),
    ],
)
def test_path_patterns_know_the_name_of_a_source(
    memory: Memory, pattern: str, expected: set[str]
) -> None:
    assert filtered(memory, path=pattern) == expected


def test_the_source_filter_takes_the_name_of_an_added_folder(memory: Memory, notes: Path) -> None:
    other = notes.with_name("notes-2")
    other.mkdir()
    (other / "x.md").write_text("Another heron.\n", encoding="utf-8")
    memory.add_source(other)
    assert (
        filtered(memory, source="notes")
        == filtered(memory, source="NOTES")
        == ALL - {"memory/2026-02-24.md"}
    )
    assert filtered(memory, source="notes-2") == {"notes-2:x.md"}
    assert filtered(memory, source="notes", path="ferry.md") == {"notes:ferry.md"}
    assert filtered(memory, source="notes", since="2026-03-01") == {
        "notes:projects/2026-03-04-zebra.md"
    }
    assert filtered(memory, source="memory") == {*ALL, "notes-2:x.md"}


def test_a_source_that_does_not_exist_is_answered_with_the_names_of_those_that_do(
    memory: Memory,
) -> None:
    nothing = memory.search("heron", source="letters").nothing
    assert (
        nothing is not None
        and "No file of a source 'letters' is indexed; there are files of memory, notes."
        in nothing.message
    )
    memory.remove_source("notes")
    nothing = memory.search("heron", source="notes").nothing
    assert (
        nothing is not None
        and "No file of a source 'notes' is indexed; there are files of memory." in nothing.message
    )


@pytest.mark.parametrize("name", ["memory", "Sessions"])
def test_the_names_of_the_kinds_of_memory_cannot_be_names_of_added_folders(
    memory: Memory, notes: Path, name: str
) -> None:
    folder = notes.with_name(name)
    folder.mkdir()
    for given in ("", name):
        with pytest.raises(ConfigError, match="the name of a source that is always there"):
            memory.add_source(folder, name=given)
    assert memory.add_source(folder, name="my-" + name).name == "my-" + name


def test_the_command_line_and_the_tool_filter_by_added_folders(tmp_path: Path, notes: Path) -> None:
    place: Place = new_place(tmp_path)
    place.state.mkdir(mode=0o700)
    (place.state / "clawmark.json").write_text(
        '{ memorySearch: { provider: "none" } }', encoding="utf-8"
    )
    place.write("memory/own.md", "The heron nests by the lake.\n")
    assert place.run("add", str(notes)).code == 0
    expected = ["notes:ferry.md", "notes:projects/2026-03-04-zebra.md"]
    for words in (["--source", "notes"], ["--path", "notes:**"]):
        assert sorted(place.run("search", "heron", "--files", *words).out.splitlines()) == expected
    (notes / "ferry.md").unlink()
    assert (
        place.run("search", "heron", "--files", "--source", "notes").out.splitlines()
        == expected[1:]
    )
    place.run("sources", "remove", "notes")
    empty = place.run("search", "heron", "--source", "notes", "--fail-if-empty")
    assert empty.code == 1 and "No file of a source 'notes' is indexed" in empty.out
    with Memory.open(place.workspace, state_dir=place.state) as memory:
        memory.add_source(notes)
        search = memory.tools()[0]
        found: Any = search.call({"query": "heron", "source": "notes"})
        assert [result["path"] for result in found["results"]] == expected[1:]


# --- transcripts ----------------------------------------------------------------------------------


@pytest.fixture
def talks(agent: Path) -> Path:
    """An index that holds transcripts, too."""
    with opened(agent) as memory:
        folder = Path(memory.places.sessions_dir)
    folder.mkdir(parents=True)
    message = {"role": "user", "content": "The heron nests by the private pier."}
    line = json.dumps({"type": "message", "timestamp": "2026-02-24T10:00:00Z", "message": message})
    (folder / "talk.jsonl").write_text(line + "\n", encoding="utf-8")
    with opened(agent, BOTH) as memory:
        memory.sync()
        assert (
            filtered(memory, source="sessions")
            == filtered(memory, path="sessions/**")
            == {"sessions/talk.jsonl"}
        )
    return folder


@pytest.mark.usefixtures("talks")
def test_filters_do_not_find_transcripts_that_are_switched_off(memory: Memory) -> None:
    assert (
        filtered(memory) == filtered(memory, path="**") == filtered(memory, source="memory") == ALL
    )
    assert filtered(memory, since="2026-02-24") == ALL - {"notes:ferry.md"}
    nothing = memory.search("heron", source="sessions").nothing
    assert (
        nothing is not None
        and "No file of a source 'sessions' is indexed; there are files of memory, notes."
        in nothing.message
    )
    nothing = memory.search("pier", path="sessions/**").nothing
    assert (
        nothing is not None
        and nothing.code == "filtered-out"
        and "No passage matches" in nothing.message
    )


@pytest.mark.usefixtures("talks")
def test_transcripts_that_are_switched_off_do_not_use_up_the_candidates_of_a_filter(
    memory: Memory, talks: Path
) -> None:
    line = (talks / "talk.jsonl").read_text(encoding="utf-8")
    for number in range(300):
        (talks / f"{number}.jsonl").write_text(
            line.replace("nests by", "heron heron"), encoding="utf-8"
        )
    with opened(Path(memory.workspace.root), BOTH) as both:
        both.sync()
    assert filtered(memory, path="**") == ALL


@pytest.mark.usefixtures("talks")
def test_added_folders_are_not_found_while_only_transcripts_are_searched(
    memory: Memory, agent: Path
) -> None:
    with opened(agent, ["sessions"]) as talks_only:
        assert filtered(talks_only, path="**") == {"sessions/talk.jsonl"}
        assert filtered(talks_only, source="notes") == set()
        assert talks_only.sync().deleted == 0
    assert filtered(memory) == ALL and memory.plan()[0].due == 0
