"""The models of the timeline and of a day."""

from __future__ import annotations

from pathlib import Path

import pytest
from web_memory import opened

from clawmark.model.documents import DayAmount
from clawmark.model.errors import FilterError
from clawmark.model.provenance import Origin
from clawmark.web.pages.timeline import (
    DAYS_SHOWN,
    MOST_CHARACTERS,
    day_page,
    level_of,
    make_calendar,
    timeline_page,
)

WEB = Origin(actor="agent", kind="web", trust="external", session="agent:main:main")


def test_a_calendar_has_every_day_of_the_year_in_its_week() -> None:
    calendar = make_calendar([DayAmount("2026-11-01", 1, 500)], 2026)
    days = [cell for week in calendar.weeks for cell in week.days if cell is not None]
    assert len(days) == 365
    assert (calendar.weeks[0].month, calendar.weeks[0].days[3]) == ("Jan", days[0])  # a Thursday
    (filled,) = [cell for cell in days if cell.level]
    assert (filled.day, filled.title) == ("2026-11-01", "1 Nov: 500 bytes")


@pytest.mark.parametrize("year", [1, 2024, 9999])
def test_a_calendar_can_be_made_for_any_year(year: int) -> None:
    assert len(make_calendar([], year).weeks) >= 52


def test_shades_grow_with_the_amount() -> None:
    levels = [level_of(size, 1000) for size in (1, 100, 300, 600, 1000)]
    assert levels == sorted(levels)
    assert (levels[0], levels[-1]) == (1, 4)


def test_the_newest_days_come_first_with_time_and_origin(tmp_path: Path) -> None:
    with opened(
        tmp_path, {"memory/2026-11-14.md": "# 2026-11-14\n\n- 09:30 met *Ann*\n"}
    ) as memory:
        memory.append("the page says so", origin=WEB)
        model = timeline_page(memory)
    assert [day.name for day in model.days] == [
        "Sunday, 15 November 2026",
        "Saturday, 14 November 2026",
    ]
    today, before = model.days[0].entries[0], model.days[1].entries[0]
    assert (today.time, today.text, today.origin.words) == (
        "12:00",
        "the page says so",
        "from outside",
    )
    assert (today.origin.how, today.origin.session) == ("from a web page", "agent:main:main")
    assert (before.time, before.text, before.address) == (
        "09:30",
        "met *Ann*",
        "/file/memory/2026-11-14.md#L3",
    )


def test_older_days_are_on_further_pages(tmp_path: Path) -> None:
    files = {f"memory/2026-10-{day:02}.md": f"- note {day}\n" for day in range(1, 10)}
    with opened(tmp_path, files) as memory:
        first = timeline_page(memory)
        second = timeline_page(memory, until=first.older)
    assert len(first.days) == DAYS_SHOWN
    assert [day.day for day in second.days] == ["2026-10-02", "2026-10-01"]
    assert second.older == ""


def test_a_year_begins_with_its_last_day(tmp_path: Path) -> None:
    files = {"memory/2025-03-01.md": "- old\n", "memory/2026-11-01.md": "- new\n"}
    with opened(tmp_path, files) as memory:
        model = timeline_page(memory, year="2025")
    assert (model.calendar.year, model.calendar.years) == (2025, (2026, 2025))
    assert [day.day for day in model.days] == ["2025-03-01"]


def test_an_empty_memory_has_an_empty_timeline(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        model = timeline_page(memory)
    assert (model.days, model.older, model.calendar.total) == ((), "", 0)


def test_a_long_entry_is_cut_and_a_long_day_is_cut(tmp_path: Path) -> None:
    entries = "".join(f"- {number} {'word ' * 700}\n" for number in range(40))
    files = {"memory/2026-11-01.md": "- " + "x" * 1_000_000 + "\n", "memory/2026-11-02.md": entries}
    with opened(tmp_path, files) as memory:
        one = day_page(memory, "2026-11-01")
        many = day_page(memory, "2026-11-02")
    assert (one.day.entries[0].is_cut, one.cut) == (True, False)
    assert sum(len(entry.text) for entry in many.day.entries) <= MOST_CHARACTERS
    assert many.cut


def test_a_day_knows_its_neighbours_and_may_be_empty(tmp_path: Path) -> None:
    files = {"memory/2026-10-01.md": "- a\n", "memory/2026-10-09.md": "- b\n"}
    with opened(tmp_path, files) as memory:
        model = day_page(memory, "2026-10-05")
        later = day_page(memory, "2026-10-09")
    assert (model.day.entries, model.earlier, model.later) == ((), "2026-10-01", "2026-10-09")
    assert ([one.text for one in later.day.entries], later.later) == (["b"], "")


@pytest.mark.parametrize("text", ["2026-13-01", "<script>", "tomorrow"])
def test_a_wrong_day_is_refused(tmp_path: Path, text: str) -> None:
    with opened(tmp_path) as memory, pytest.raises(FilterError):
        day_page(memory, text)


def test_a_wrong_year_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as memory, pytest.raises(FilterError, match="not a year"):
        timeline_page(memory, year="0000")
