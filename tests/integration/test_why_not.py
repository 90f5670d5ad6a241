"""Why a passage is missing: the step that drops it, and changes that really bring it up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import new_place

from clawmark import Memory
from clawmark.engine.search.explain import score_of
from clawmark.model.errors import FileMissing, PathDenied
from clawmark.model.why_not import WhyNot

QUERY = "Which database did we pick for billing?"


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    folder = tmp_path_factory.mktemp("why-not")
    notes = folder / "workspace" / "memory"
    notes.mkdir(parents=True)
    (folder / "workspace" / "MEMORY.md").write_text(
        "# Facts\n\n- We picked PostgreSQL as the database for billing.\n", encoding="utf-8"
    )
    for day in range(1, 29):
        text = f"# 2026-10-{day:02}\n\n- The database of shop {day} was backed up for billing.\n"
        (notes / f"2026-10-{day:02}.md").write_text(text, encoding="utf-8")
    (notes / "garden.md").write_text(
        "# Garden\n\n- The tomatoes need water every evening.\n\n\n", encoding="utf-8"
    )
    with Memory.open(
        folder / "workspace", state_dir=folder / "state", provider="static", background=False
    ) as opened:
        opened.sync()
        yield opened


def remedy_works(memory: Memory, found: WhyNot, **settings: float) -> bool:
    path = found.citation.partition("#")[0]
    hits = memory.search(found.remedies[-1].query, **settings).hits  # type: ignore[arg-type]
    return any(hit.path == path for hit in hits)


def test_a_hit_is_named_with_its_number(memory: Memory) -> None:
    found = memory.why_not(QUERY, "MEMORY.md#L3")
    assert (found.outcome, found.sentence[:9]) == ("hit", "It is hit")
    assert found.remedies == ()


def test_passage_after_the_last_result_is_brought_up_by_more_results(memory: Memory) -> None:
    hits = [hit.path for hit in memory.search(QUERY, max_results=20).hits]
    found = memory.why_not(QUERY, hits[10])
    assert (found.outcome, found.step, found.rank) == ("after-the-last", 8, 11)
    assert found.remedies[0].flags == "--max-results 11"
    assert hits[10] in [hit.path for hit in memory.search(QUERY, max_results=11).hits]


def test_passage_below_the_threshold_is_brought_up_by_a_lower_one(memory: Memory) -> None:
    low = memory.why_not("Which plants are thirsty?", "memory/garden.md", min_score=0.99)
    assert (low.outcome, low.min_score, low.score < 0.99) == ("below-threshold", 0.99, True)
    assert "dropped by the threshold" in low.sentence
    flags = low.remedies[0].flags.split()
    lower = float(flags[flags.index("--min-score") + 1])
    hits = memory.search("Which plants are thirsty?", min_score=lower, max_results=50).hits
    assert "memory/garden.md" in [hit.path for hit in hits]


def test_filter_that_leaves_a_passage_out_is_named(memory: Memory) -> None:
    found = memory.why_not(QUERY, "memory/2026-10-02.md", since="2026-10-20", max_results=30)
    assert (found.outcome, found.step) == ("filtered-out", 1)
    assert found.sentence.startswith("The filter since leaves it out")
    assert found.remedies[0].what == "It is returned without the filter since."


def test_words_that_bring_a_passage_up_are_words_of_it(memory: Memory) -> None:
    found = memory.why_not(QUERY, "memory/garden.md")
    assert found.outcome not in ("hit", "part-of-hit")
    assert remedy_works(memory, found)
    assert found.remedies[-1].query.startswith(QUERY)


def test_blank_line_is_not_in_any_passage(memory: Memory) -> None:
    assert memory.why_not(QUERY, "memory/garden.md#L99").outcome == "no-passage"


def test_missing_file_and_foreign_file_are_errors(memory: Memory) -> None:
    with pytest.raises(FileMissing):
        memory.why_not(QUERY, "memory/nowhere.md")
    with pytest.raises(PathDenied):
        memory.why_not(QUERY, "/etc/passwd")


@pytest.mark.parametrize("fusion", ["calibrated", "weighted"])
def test_factors_of_every_candidate_add_up_to_its_score(tmp_path: Path, fusion: str) -> None:
    place = new_place(tmp_path)
    overrides = {
        "memorySearch.query.hybrid.fusion": fusion,
        "memorySearch.query.hybrid.temporalDecay.enabled": True,
    }
    questions = ("Which database?", "tea yesterday", "the router in November", "harbour walk")
    with Memory.open(
        place.workspace, state_dir=place.state, provider="static", overrides=overrides
    ) as memory:
        for question in questions:
            explanation = memory.search(question, explain=True).explanation
            assert explanation is not None and explanation.candidates
            for story in explanation.candidates:
                assert score_of(story) == pytest.approx(story.score, abs=1e-9)


def test_command_prints_the_sentence_and_what_helps(tmp_path: Path) -> None:
    place = new_place(tmp_path)
    ran = place.run("search", "--why-not", "memory/2026-11-15.md#L3", "Which database for billing?")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("memory/2026-11-15.md#L")
    assert "What helps" in ran.out
    as_json = place.run("search", "--json", "--why-not", "MEMORY.md", "PostgreSQL").json()
    assert as_json["whyNot"]["outcome"] == "hit"


def test_command_denies_a_file_that_is_not_memory(tmp_path: Path) -> None:
    ran = new_place(tmp_path).run("search", "--why-not", "/etc/passwd", "root")
    assert (ran.code, "Traceback" in ran.err) == (4, False)
