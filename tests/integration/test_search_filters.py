"""Filters and times in questions, through the library and the command line, over real files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from commands import Place, new_place

from clawmark import Memory
from clawmark.model.errors import FilterError
from clawmark.testing import HashingEmbedder

MORE = (
    "It was written down in a long sentence, so that the next section "
    "becomes a passage of its own in the index.\n"
)
LOG = (
    f"## 2026-01-05\n\nThe heron plan was begun.\n{MORE}\n## "
    f"2026-01-20\n\nThe heron plan was stopped.\n{MORE}"
)


def write(root: Path) -> None:
    (root / "memory" / "team").mkdir(parents=True, exist_ok=True)
    (root / "MEMORY.md").write_text("# Memory\n\n- The heron plan matters.\n", encoding="utf-8")
    (root / "memory" / "2026-02-24.md").write_text(
        "- The heron plan was approved.\n", encoding="utf-8"
    )
    (root / "memory" / "team" / "2026-02-10.md").write_text(
        "- The heron plan was discussed.\n", encoding="utf-8"
    )
    (root / "memory" / "log.md").write_text(LOG, encoding="utf-8")
    for number in range(150):
        (root / "memory" / f"crowd-{number}.md").write_text(
            "heron plan heron plan heron plan\n", encoding="utf-8"
        )


@pytest.fixture(params=["keywords", "vectors"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    root = tmp_path / "agent"
    write(root)
    embedder = HashingEmbedder() if request.param == "vectors" else None
    provider = None if embedder else "none"
    clock = lambda: datetime(2026, 2, 25, 12, 0)  # noqa: E731
    overrides = {"memorySearch.chunking.tokens": 40, "memorySearch.chunking.overlap": 0}
    with Memory.open(
        root,
        state_dir=tmp_path / "state",
        embedder=embedder,
        provider=provider,
        clock=clock,
        overrides=overrides,
    ) as opened:
        opened.sync()
        yield opened


def paths(memory: Memory, text: str = "heron plan", **filters: str) -> set[str]:
    return {hit.path for hit in memory.search(text, max_results=20, min_score=0.0, **filters).hits}  # type: ignore[arg-type]


def test_days_are_inclusive_and_leave_out_what_has_no_date(memory: Memory) -> None:
    assert paths(memory, since="2026-02-10") == {
        "memory/2026-02-24.md",
        "memory/team/2026-02-10.md",
    }
    assert paths(memory, since="2026-02-10", until="2026-02-10") == {"memory/team/2026-02-10.md"}
    assert paths(memory, since="2w") == {"memory/2026-02-24.md"}


def test_a_dated_heading_dates_its_section(memory: Memory) -> None:
    (hit,) = memory.search("heron plan", min_score=0.0, until="2026-01-10").hits
    assert (hit.path, hit.date) == ("memory/log.md", "2026-01-05")
    assert "begun" in hit.snippet


def test_a_narrow_filter_finds_all_that_matches_behind_a_crowd_of_better_matches(
    memory: Memory,
) -> None:
    assert paths(memory, path="memory/team/**") == {"memory/team/2026-02-10.md"}
    assert paths(memory, path="2026-*.md") == {"memory/2026-02-24.md", "memory/team/2026-02-10.md"}
    assert paths(memory, path="MEMORY.md", source="memory") == {"MEMORY.md"}


def test_an_empty_answer_says_that_the_filters_are_the_reason(memory: Memory) -> None:
    nothing = memory.search("heron", since="2026-02-25").nothing
    assert nothing is not None and nothing.code == "filtered-out"
    assert "since 2026-02-25" in nothing.message and "151 of them" in nothing.message
    nothing = memory.search("heron", source="letters").nothing
    assert (
        nothing is not None
        and "No file of a source 'letters' is indexed; there are files of memory."
        in nothing.message
    )


def test_a_filter_that_cannot_be_understood_is_refused(memory: Memory) -> None:
    with pytest.raises(FilterError, match="since must be a day"):
        memory.search("heron", since="soon")


def test_a_time_in_the_question_prefers_notes_of_that_time_and_hides_none(memory: Memory) -> None:
    # The words of both notes are equally good, so only the day can decide.
    named = memory.search(
        "heron plan was two weeks ago", max_results=200, min_score=0.0, explain=True
    )
    stories = (
        {story.citation: story for story in named.explanation.candidates}
        if named.explanation
        else {}
    )
    inside, outside = stories["memory/team/2026-02-10.md#L1"], stories["memory/2026-02-24.md#L1"]
    assert (inside.when, outside.when) == (1.0, 0.0)
    assert inside.score > outside.score
    assert any("2026-02-08 to 2026-02-14" in step.summary for step in named.explanation.steps)  # type: ignore[union-attr]
    assert len(named.hits) >= len(
        memory.search("heron plan was", max_results=200, min_score=0.0).hits
    )


def test_words_that_pass_no_filter_are_distinguished_from_words_that_do_not_occur(
    tmp_path: Path,
) -> None:
    root = tmp_path / "agent"
    write(root)
    with Memory.open(root, state_dir=tmp_path / "state", provider="none") as memory:
        nothing = memory.search("approved", path="MEMORY.md").nothing
        assert (
            nothing is not None
            and nothing.code == "filtered-out"
            and "The words occur" in nothing.message
        )
        nothing = memory.search("zeppelin", path="MEMORY.md").nothing
        assert nothing is not None and nothing.code == "no-such-words"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = new_place(tmp_path)
    write(made.workspace)
    made.state.mkdir()
    (made.state / "clawmark.json").write_text(
        '{ memorySearch: { provider: "none" } }', encoding="utf-8"
    )
    return made


def test_the_command_line_takes_the_same_filters(place: Place) -> None:
    ran = place.run(
        "search", "heron plan", "--since", "2026-02-01", "--until", "2026-02-15", "--json"
    )
    assert [hit["path"] for hit in ran.json()["results"]] == ["memory/team/2026-02-10.md"]
    refused = place.run("search", "heron", "--since", "soon")
    assert refused.code == 2 and refused.err.startswith("clawmark: since must be a day")


def test_files_prints_paths_only_and_an_empty_answer_can_fail(place: Place) -> None:
    ran = place.run("search", "heron plan", "--files", "--path", "2026-*")
    assert (ran.code, sorted(ran.out.splitlines())) == (
        0,
        ["memory/2026-02-24.md", "memory/team/2026-02-10.md"],
    )
    empty = place.run("search", "zeppelin", "--files", "--fail-if-empty")
    assert (empty.code, empty.out) == (1, "") and "None of these words" in empty.err
    assert place.run("search", "zeppelin").code == 0
    assert place.run("search", "heron", "--fail-if-empty").code == 0
    assert place.run("search", "--batch", "-", "--files").code == 2


def test_each_line_of_a_batch_may_have_filters_of_its_own(place: Place) -> None:
    lines = [
        {"id": "a", "query": "heron plan", "path": "MEMORY.md"},
        {"id": "b", "query": "heron plan"},
        {"id": "c", "query": "heron plan", "since": 7},
        {"id": "d", "query": "heron plan", "since": "soon"},
    ]
    ran = place.run(
        "search", "--batch", "-", "--path", "2026-02-24.md", stdin="\n".join(map(json.dumps, lines))
    )
    a, b, c, d = map(json.loads, ran.out.splitlines())
    assert [hit["path"] for hit in a["results"]] == ["MEMORY.md"]
    assert [hit["path"] for hit in b["results"]] == ["memory/2026-02-24.md"]
    assert (c["id"], c["error"]["message"]) == ("c", "since on line 3 must be a string.")
    assert (d["id"], d["error"]["type"]) == ("d", "FilterError")
