"""Ageing and diversity, with the values recorded from OpenClaw."""

from __future__ import annotations

import pytest

from clawmark.engine.search.decay import apply_decay, multiplier
from clawmark.engine.search.mmr import diversify, similarity, word_set
from clawmark.engine.search.scoring import Candidate
from clawmark.model.values import ChunkRow


@pytest.mark.parametrize(
    ("age", "half_life", "expected"),
    [
        (0, 30, 1.0),
        (7, 30, 0.8506671609508557),
        (30, 30, 0.5),
        (90, 30, 0.12500000000000003),
        (148, 30, 0.03272794133814459),
        (10, 0, 1.0),
        (-5, 30, 1.0),
    ],
)
def test_scores_halve_with_each_half_life(age: float, half_life: float, expected: float) -> None:
    assert multiplier(age, half_life) == pytest.approx(expected, abs=1e-12)


def candidate(path: str, score: float = 1.0) -> Candidate:
    row = ChunkRow(
        key=1, path=path, source="memory", start_line=1, end_line=1, hash="h", heading="", text=""
    )
    return Candidate(
        row=row,
        text=0.0,
        name=0.0,
        vector=score,
        space="",
        bm25=0.0,
        mask=0,
        meaning=1.0,
        score=score,
    )


def test_dated_notes_age_wherever_the_date_stands() -> None:
    paths = ["memory/2026-02-01.md", "memory/2026-02-01-api.md", "memory/team/2026-02-01.md"]
    aged = apply_decay([candidate(path) for path in paths], 30, "2026-03-03")
    assert all(c.score == pytest.approx(0.5) for c in aged)


def test_memory_md_and_undated_notes_never_age() -> None:
    aged = apply_decay([candidate("MEMORY.md"), candidate("memory/projects.md")], 30, "2036-03-03")
    assert all(c.score == 1.0 for c in aged)


ITEMS = [
    ("a", 0.92, "configured omada router set vlan 10 for iot devices"),
    ("b", 0.89, "configured omada router moved iot to vlan 10"),
    ("c", 0.85, "router omada er605 adguard 192 168 10 2 vlan 10 iot"),
    ("d", 0.78, "set up adguard dns on 192 168 10 2"),
]


@pytest.mark.parametrize(
    ("lambda_", "order"),
    [(1, "abcd"), (0.9, "abcd"), (0.7, "abcd"), (0.5, "abcd"), (0.3, "adcb"), (0, "adcb")],
)
def test_diversity_orders_as_recorded(lambda_: float, order: str) -> None:
    picked = diversify(ITEMS, lambda_, lambda item: item[1], lambda item: item[2])
    assert "".join(item[0] for item in picked) == order


def test_words_of_any_script_count() -> None:
    assert similarity(word_set("Где мы обедали"), word_set("где обедали вчера")) > 0
    assert similarity(word_set("数据库迁移"), word_set("数据库备份")) > similarity(
        word_set("数据库迁移"), word_set("晚饭")
    )
    assert similarity(word_set("…"), word_set("…")) == 0.0
