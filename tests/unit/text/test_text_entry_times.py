"""The time in front of an entry is not part of what the entry says."""

from __future__ import annotations

import pytest

from clawmark.text.entry_times import without_times
from clawmark.text.write_check import FileText, check_write

LOG = "memory/2026-02-24.md"


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("- 14:05 We chose PostgreSQL", "- We chose PostgreSQL"),
        ("* 00:00 x\n+ 23:59 y\n", "* x\n+ y\n"),
        ("- [ ] 14:05 call Anna\n- [x] 15:00 y\n", "- [ ] call Anna\n- [x] y\n"),
        ("# 2026-02-24\n\n- 09:30 14:05 train\n", "# 2026-02-24\n\n- 14:05 train\n"),
    ],
)
def test_the_time_of_an_entry_is_removed_once(text: str, rest: str) -> None:
    assert without_times(text) == rest


@pytest.mark.parametrize(
    "text",
    [
        "14:05 train to Berlin",
        "- 24:00 x",
        "- 9:30 x",
        "- 14:05",
        "- 14:05: x",
        "- 14:05:33 x",
        "  - 14:05 nested",
        "- at 14:05 x",
    ],
)
def test_other_times_stay(text: str) -> None:
    assert without_times(text) == text


def problem(text: str, held: str, path: str = LOG) -> str:
    found = check_write(text, files=[FileText(path, held)])
    return found.message if found else ""


def test_the_same_text_at_another_time_is_a_duplicate() -> None:
    held = "# 2026-02-24\n\n- 14:05 Ada prefers tea.\n- Bob prefers coffee.\n"
    assert problem("Ada prefers tea", held) == f"It is already there: {LOG}#L3."
    assert problem("- 14:05 Ada prefers tea", held) == f"It is already there: {LOG}#L3."
    assert problem("Bob prefers coffee", held) == f"It is already there: {LOG}#L4."


def test_a_time_that_the_text_itself_has_makes_a_difference() -> None:
    held = "- 14:05 train to Berlin\n- 09:30 16:00 dentist\n"
    assert problem("15:00 train to Berlin", held) == ""
    assert problem("17:00 dentist", held) == ""
    assert problem("16:00 dentist", held)


def test_only_a_daily_log_has_times_of_entries() -> None:
    assert problem("Standup", "- 08:00 Standup\n", "MEMORY.md") == ""
    assert problem("08:00 Standup", "- 08:00 Standup\n", "MEMORY.md")
