"""Times that a question names become ranges of days; words that only look like times do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.text.time_expressions import MAX_RANGES, time_expressions

TODAY = "2026-02-24"  # a Tuesday


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("what happened on 2026-01-05?", "2026-01-05", "2026-01-05"),
        ("notes of 2025-11", "2025-11-01", "2025-11-30"),
        ("what did we do on 3 May?", "2025-05-03", "2025-05-03"),
        ("what did we do on the 3rd of may", "2025-05-03", "2025-05-03"),
        ("the meeting on May 3rd", "2025-05-03", "2025-05-03"),
        ("the meeting on May 3, 2024", "2024-05-03", "2024-05-03"),
        ("8 May 2023", "2023-05-08", "2023-05-08"),
        ("Feb 24", "2026-02-24", "2026-02-24"),
        ("on Feb 25", "2025-02-25", "2025-02-25"),
        ("born on 29 February", "2024-02-29", "2024-02-29"),
        ("what did we decide in October?", "2025-10-01", "2025-10-31"),
        ("the October budget", "2025-10-01", "2025-10-31"),
        ("in February", "2026-02-01", "2026-02-28"),
        ("last February", "2025-02-01", "2025-02-28"),
        ("on 31 February 2025", "2025-02-01", "2025-02-28"),
        ("in may", "2025-05-01", "2025-05-31"),
        ("last march", "2025-03-01", "2025-03-31"),
        ("next March", "2026-03-01", "2026-03-31"),
        ("May 2023", "2023-05-01", "2023-05-31"),
        ("in Sept 2024", "2024-09-01", "2024-09-30"),
        ("since March", "2025-03-01", "2026-02-24"),
        ("what changed in 2025", "2025-01-01", "2025-12-31"),
        ("everything since 2024", "2024-01-01", "2026-02-24"),
        ("the plan for Q3 2025", "2025-07-01", "2025-09-30"),
        ("Q4 numbers", "2025-10-01", "2025-12-31"),
        ("yesterday", "2026-02-23", "2026-02-23"),
        ("today's standup", "2026-02-24", "2026-02-24"),
        ("the day before yesterday", "2026-02-22", "2026-02-22"),
        ("last night", "2026-02-23", "2026-02-23"),
        ("this morning", "2026-02-24", "2026-02-24"),
        ("since yesterday", "2026-02-23", "2026-02-24"),
        ("tomorrow", "2026-02-25", "2026-02-25"),
        ("what did I do last week?", "2026-02-16", "2026-02-22"),
        ("this week", "2026-02-23", "2026-03-01"),
        ("next week", "2026-03-02", "2026-03-08"),
        ("last weekend", "2026-02-21", "2026-02-22"),
        ("last month", "2026-01-01", "2026-01-31"),
        ("last quarter", "2025-10-01", "2025-12-31"),
        ("last year", "2025-01-01", "2025-12-31"),
        ("since last week", "2026-02-16", "2026-02-24"),
        ("three days ago", "2026-02-21", "2026-02-21"),
        ("four weeks ago", "2026-01-24", "2026-01-30"),
        ("a month ago", "2026-01-09", "2026-02-08"),
        ("2 years ago", "2023-08-26", "2024-08-24"),
        ("a couple of weeks ago", "2026-02-07", "2026-02-13"),
        ("a few days ago", "2026-02-19", "2026-02-22"),
        ("in the past three months", "2025-11-24", "2026-02-24"),
        ("over the last 10 days", "2026-02-14", "2026-02-24"),
        ("on Monday", "2026-02-23", "2026-02-23"),
        ("on Tuesday", "2026-02-24", "2026-02-24"),
        ("last Tuesday", "2026-02-17", "2026-02-17"),
        ("next friday", "2026-02-27", "2026-02-27"),
        ("since Friday", "2026-02-20", "2026-02-24"),
    ],
)
def test_a_time_is_one_range_of_days(text: str, first: str, last: str) -> None:
    assert time_expressions(text, TODAY) == [(first, last)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "which database did we pick?",
        "you may deploy",
        "May I deploy?",
        "which of the 3 may fail",
        "it may 2 times out",
        "march to the office",
        "the march on Rome",
        "what does June like?",
        "an august company",
        "april said hello",
        "the sun sat on a second",
        "Mar is short for Marta",
        "every Monday",
        "the 2025 roadmap",
        "version 2025.1",
        "call 2024-13-45",
        "ticket 12026-01-05",
        "days of our lives",
        "long ago",
        "how many days ago was it",
        "year-over-year growth",
        "99999999 weeks ago",
        "9999 years ago",
        "week 7",
        "in decimal",
        "port 2026",
        "the last of them",
    ],
)
def test_words_that_only_look_like_times_give_no_range(text: str) -> None:
    assert time_expressions(text, TODAY) == []


def test_several_times_give_several_ranges() -> None:
    found = time_expressions("between 3 May 2024 and 5 May 2024, or last week", TODAY)
    assert found == [
        ("2024-05-03", "2024-05-03"),
        ("2024-05-05", "2024-05-05"),
        ("2026-02-16", "2026-02-22"),
    ]


def test_a_year_is_not_read_again_after_its_date() -> None:
    assert time_expressions("on 3 May 2024", TODAY) == [("2024-05-03", "2024-05-03")]


def test_times_are_counted_from_the_first_and_the_last_day_of_the_calendar() -> None:
    assert time_expressions("last year, 4 weeks ago, last week", "0001-01-03") == []
    assert time_expressions("tomorrow, next week, next year, next month", "9999-12-31") == []


WORDS = st.sampled_from(
    (
        "in",
        "on",
        "last",
        "next",
        "since",
        "may",
        "march",
        "3",
        "31",
        "2025",
        "weeks",
        "ago",
        "a few",
        "May",
        "3rd",
        "0",
    )
)


@given(st.lists(WORDS | st.text(max_size=5), max_size=12).map(" ".join), st.dates())
def test_any_text_gives_ordered_ranges_and_never_an_error(text: str, today: object) -> None:
    found = time_expressions(text, str(today))
    assert len(found) <= MAX_RANGES
    assert all(first <= last for first, last in found)
