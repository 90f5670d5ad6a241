from __future__ import annotations

import pytest

from clawmark.model.documents import Chunk
from clawmark.text.chunking.days import day_in, with_days
from clawmark.text.dates import date_of, date_words, keyword_context


@pytest.mark.parametrize(
    ("path", "date"),
    [
        ("memory/2026-02-24.md", "2026-02-24"),
        ("memory/2026-02-24-api-design.md", "2026-02-24"),
        ("memory/sub/2026-02-24_notes.md", "2026-02-24"),
        ("2024-02-29.md", "2024-02-29"),
        ("../team/2026-12-31 party.md", "2026-12-31"),
        ("MEMORY.md", ""),
        ("memory/notes-2026-02-24.md", ""),
        ("memory/2026-02-24/notes.md", ""),
        ("memory/2026-02-30.md", ""),
        ("memory/2025-02-29.md", ""),
        ("memory/2026-13-01.md", ""),
        ("memory/2026-00-10.md", ""),
        ("memory/1899-12-31.md", ""),
        ("memory/2200-01-01.md", ""),
        ("memory/2026-02-241.md", ""),
        ("memory/2026-02.md", ""),
        ("memory/२०२६-०२-२४.md", ""),
        ("memory/2026_02_24.md", ""),
        ("", ""),
    ],
)
def test_the_date_is_the_real_day_the_file_name_starts_with(path: str, date: str) -> None:
    assert date_of(path) == date


def test_a_day_has_the_words_people_use_for_it() -> None:
    assert date_words("2026-02-24") == "2026-02-24 24 24th february 2026 feb tuesday"
    assert date_words("2023-05-01") == "2023-05-01 1 1st may 2023 may monday"


def test_the_context_has_date_headings_and_path() -> None:
    context = keyword_context("memory/projects/2026-02-24-api-design.md", "Billing > Decisions")
    assert (
        context
        == "2026-02-24 24 24th february 2026 feb tuesday Billing > Decisions projects api design"
    )


def test_the_context_of_an_undated_note_is_its_headings_and_name() -> None:
    assert keyword_context("MEMORY.md", "") == "MEMORY"
    assert keyword_context("memory/team_contacts.md", "People") == "People team contacts"


def test_the_context_is_cut_into_words_like_a_passage() -> None:
    assert keyword_context("memory/笔记.md", "Решения").split() == ["решен", "笔", "记"]


@pytest.mark.parametrize(
    ("heading", "day"),
    [
        ("2026-02-24", "2026-02-24"),
        ("Standup 2026-02-24 (Tuesday)", "2026-02-24"),
        ("24 February 2026", "2026-02-24"),
        ("Tuesday, 24th Feb. 2026", "2026-02-24"),
        ("February 24, 2026", "2026-02-24"),
        ("sept 3rd 2025: launch", "2025-09-03"),
        ("2026-02-30 then 2026-03-01", "2026-03-01"),
        ("2026-02-24-01", ""),
        ("12026-02-24", ""),
        ("February 2026", ""),
        ("May 24", ""),
        ("31 February 2026", ""),
        ("Plan", ""),
    ],
)
def test_the_first_valid_date_in_a_heading_is_its_day(heading: str, day: str) -> None:
    assert day_in(heading) == day


LOG = """\
# Work log

## 2026-01-05
Chose Postgres.

## 2026-01-06
### Morning
Moved the queue.

## Later
No date here.
"""


def days(path: str, text: str, *spans: tuple[int, int]) -> list[tuple[str, str]]:
    chunks = [
        Chunk(start_line=start, end_line=end, text="", hash="", heading="") for start, end in spans
    ]
    return [(chunk.first_day, chunk.last_day) for chunk in with_days(chunks, path, text)]


def test_every_chunk_of_a_dated_file_has_the_files_day() -> None:
    assert days("memory/2026-02-24.md", LOG, (1, 4), (11, 12)) == [("2026-02-24", "2026-02-24")] * 2


def test_a_chunk_has_the_days_of_the_dated_sections_it_lies_in() -> None:
    path = "memory/log.md"
    assert days(path, LOG, (4, 4), (7, 8), (8, 8)) == [
        ("2026-01-05", "2026-01-05"),
        *[("2026-01-06", "2026-01-06")] * 2,
    ]
    assert days(path, LOG, (4, 7), (1, 12)) == [("2026-01-05", "2026-01-06")] * 2
    assert days(path, LOG, (1, 1), (11, 12)) == [("", ""), ("", "")]


def test_a_date_in_the_text_is_not_the_day_of_a_passage() -> None:
    assert days("MEMORY.md", "# Facts\nMoved on 2026-01-05.\n", (1, 2)) == [("", "")]
