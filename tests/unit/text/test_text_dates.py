from __future__ import annotations

import pytest

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


def test_a_day_is_said_in_the_words_people_use() -> None:
    assert date_words("2026-02-24") == "2026-02-24 24 24th february 2026 feb tuesday"
    assert date_words("2023-05-01") == "2023-05-01 1 1st may 2023 may monday"


def test_the_context_has_date_headings_and_path() -> None:
    context = keyword_context("memory/projects/2026-02-24-api-design.md", "Billing > Decisions")
    assert context == "2026-02-24 24 24th february 2026 feb tuesday Billing > Decisions projects api design"


def test_the_context_of_an_undated_note_is_its_headings_and_name() -> None:
    assert keyword_context("MEMORY.md", "") == "MEMORY"
    assert keyword_context("memory/team_contacts.md", "People") == "People team contacts"


def test_the_context_is_cut_into_words_like_a_passage() -> None:
    assert keyword_context("memory/笔记.md", "Решения").split() == ["решен", "笔", "记"]
