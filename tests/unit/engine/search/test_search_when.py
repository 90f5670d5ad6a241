"""A time in the question raises the scores of passages of that time a little and lowers none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.engine.search.scoring import Candidate
from clawmark.engine.search.time_preference import (
    BONUS,
    may_name_time,
    prefer_times,
    time_preference,
)
from clawmark.model.values import ChunkRow
from clawmark.text.time_expressions import time_expressions

WEEK = [("2026-02-16", "2026-02-22")]


@pytest.mark.parametrize(
    ("first", "last", "share"),
    [
        ("2026-02-16", "2026-02-16", 1.0),
        ("2026-02-22", "2026-02-22", 1.0),
        ("2026-01-01", "2026-02-16", 1.0),
        ("2026-02-23", "2026-02-23", 0.75),
        ("2026-02-15", "2026-02-15", 0.75),
        ("2026-02-26", "2026-02-26", 0.0),
        ("2025-02-18", "2025-02-18", 0.0),
        ("", "", 0.0),
    ],
)
def test_the_share_is_whole_inside_a_range_and_falls_off_around_it(
    first: str, last: str, share: float
) -> None:
    assert time_preference(first, last, WEEK) == pytest.approx(share)


def test_no_range_prefers_nothing_and_the_best_of_several_counts() -> None:
    assert time_preference("2026-02-18", "2026-02-18", []) == 0.0
    assert time_preference("2026-02-18", "2026-02-18", [("2020-01-01", "2020-01-01"), *WEEK]) == 1.0


def candidate(key: int, score: float, day: str) -> Candidate:
    row = ChunkRow(
        key=key,
        path=f"{key}.md",
        source="memory",
        start_line=1,
        end_line=1,
        hash="h",
        heading="",
        text="",
        first_day=day,
        last_day=day,
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


DAYS = st.sampled_from(["", "2026-02-14", "2026-02-18", "2026-02-23", "2020-01-01"])


@given(st.lists(st.tuples(st.floats(0, 1), DAYS), max_size=8))
def test_no_score_is_lowered_and_none_is_raised_by_more_than_the_bonus(
    items: list[tuple[float, str]],
) -> None:
    before = [candidate(key, score, day) for key, (score, day) in enumerate(items)]
    after = prefer_times(before, WEEK)
    assert [c.score for c in after] == sorted((c.score for c in after), reverse=True)
    was = {c.row.key: c.score for c in before}
    assert all(
        was[c.row.key] <= c.score <= was[c.row.key] + BONUS * (1 - was[c.row.key]) + 1e-12
        for c in after
    )
    assert all(c.score == 0.0 for c in after if was[c.row.key] == 0.0)


@pytest.mark.parametrize(
    "text",
    [
        "last week",
        "What about October?",
        "four weeks ago",
        "(yesterday)",
        "on 3 May",
        "in 2025",
        "since 2024-01",
        "Q3",
        "next friday",
        "this morning",
        "today's news",
        "the past 10 days",
        "a year back",
        "on Feb. 3",
    ],
)
def test_every_question_with_a_time_is_parsed_for_it(text: str) -> None:
    assert time_expressions(text, "2026-02-24")
    assert may_name_time(text)


def test_an_ordinary_question_is_not_parsed_for_times() -> None:
    assert not may_name_time("which database did we pick for billing?")
