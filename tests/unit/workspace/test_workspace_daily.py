"""The daily log's path, heading and entries."""

from __future__ import annotations

import pytest

from clawmark.model.errors import WorkspaceError
from clawmark.workspace.daily import daily_header, daily_path, format_entry


def test_a_day_has_one_log() -> None:
    assert daily_path("2026-02-24") == "memory/2026-02-24.md"
    assert daily_header("2026-02-24") == "# 2026-02-24\n\n"


@pytest.mark.parametrize(
    "day", ["", "today", "2026-2-4", "2026-02-24-x", "../../x", "٢٠٢٦-٠٢-٢٤", "2026-02-24/x"]
)
def test_an_invalid_day_is_refused(day: str) -> None:
    with pytest.raises(WorkspaceError, match="is not a day"):
        daily_path(day)


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("We chose PostgreSQL", "- We chose PostgreSQL\n"),
        ("  spaces  \n\n", "- spaces\n"),
        ("- already an item", "- already an item\n"),
        ("* starred", "- starred\n"),
        ("one\ntwo\r\n\nthree  ", "- one\n  two\n\n  three\n"),
    ],
)
def test_a_text_becomes_one_list_item(text: str, entry: str) -> None:
    assert format_entry(text) == entry


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        (
            "We chose PostgreSQL\nIt exports well",
            "- 14:05 We chose PostgreSQL\n  It exports well\n",
        ),
        ("* starred", "- 14:05 starred\n"),
        ("16:00 dentist", "- 14:05 16:00 dentist\n"),
        ("14:05 once is enough", "- 14:05 once is enough\n"),
        ("[ ] call Anna", "- [ ] 14:05 call Anna\n"),
        ("- [x] 14:05 done", "- [x] 14:05 done\n"),
    ],
)
def test_an_entry_starts_with_the_time(text: str, entry: str) -> None:
    assert format_entry(text, "14:05") == entry


@pytest.mark.parametrize("text", ["", "  \n\t", "- ", "\r\n"])
def test_an_empty_text_is_refused(text: str) -> None:
    with pytest.raises(WorkspaceError, match="There is nothing to write"):
        format_entry(text)
