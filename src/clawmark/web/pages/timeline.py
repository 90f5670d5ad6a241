"""Timeline: a calendar of how much was written, and below it the days with their entries."""

from __future__ import annotations

import calendar
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from itertools import accumulate, groupby
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from clawmark.memory import Memory
from clawmark.model.documents import DayAmount
from clawmark.model.errors import FilterError
from clawmark.text.filters import parse_day
from clawmark.web.entries import ShownEntry, shown_entries
from clawmark.web.render import page

DAYS_SHOWN = 7
"""Days with entries that are listed at a time."""
MOST_ENTRIES = 120
"""Entries that are listed at a time; the page of a day lists more."""
MOST_OF_A_DAY = 250
MOST_CHARACTERS = 40_000
"""Characters of entries that are listed at a time, so that a page stays light."""
LEVELS = 4
_WEEK = timedelta(days=7)


class Cell(NamedTuple):
    """A day of the calendar; `level` is 0 without entries, up to 4."""

    day: str
    level: int
    title: str


class Week(NamedTuple):
    """A column of the calendar: Monday to Sunday, with None for days of other years."""

    month: str
    """The name of the month that begins in it; otherwise empty."""
    days: tuple[Cell | None, ...]


class Calendar(NamedTuple):
    """A year of days."""

    year: int
    weeks: tuple[Week, ...]
    total: int
    """Days with entries."""
    years: tuple[int, ...]
    """The years that have entries, the newest first."""


class ShownDay(NamedTuple):
    """A day with its entries, the newest first."""

    day: str
    name: str
    """`Sunday, 1 November 2026`."""
    entries: tuple[ShownEntry, ...]


class TimelinePage(NamedTuple):
    """The model of the timeline."""

    calendar: Calendar
    days: tuple[ShownDay, ...]
    until: str
    """The day that the list begins with."""
    older: str
    """The day that the next part of the list begins with; empty at the end."""
    cut: bool = False
    """Whether entries of these days are left out."""


class DayPage(NamedTuple):
    """The model of the page of a day."""

    day: ShownDay
    earlier: str
    """The next day before and after it that has entries; empty if there is none."""
    later: str
    cut: bool


def timeline_page(memory: Memory, year: str = "", until: str = "") -> TimelinePage:
    """Return the calendar of a year, and the newest days up to `until`."""
    amounts = memory.days()
    start = parse_day("until", until, memory.today)
    if year and not start:
        start = f"{_year(year):04}-12-31"
    start = min(start or memory.today(), memory.today())
    newest_first = [one.day for one in reversed(amounts) if one.day <= start]
    days, cut = _days(memory, newest_first[:DAYS_SHOWN], MOST_ENTRIES)
    return TimelinePage(
        calendar=make_calendar(amounts, int(start[:4])),
        days=days,
        until=start,
        older=next(iter(newest_first[DAYS_SHOWN:]), ""),
        cut=cut,
    )


def day_page(memory: Memory, day: str) -> DayPage:
    """Return the entries of a day; it may have none."""
    day = parse_day("day", day, memory.today)
    known = [one.day for one in memory.days()]
    days, cut = _days(memory, [day], MOST_OF_A_DAY)
    return DayPage(
        day=days[0] if days else ShownDay(day, name_of_day(day), ()),
        earlier=max((one for one in known if one < day), default=""),
        later=min((one for one in known if one > day), default=""),
        cut=cut,
    )


def make_calendar(amounts: Sequence[DayAmount], year: int) -> Calendar:
    """Return the calendar of a year."""
    by_day = {one.day: one for one in amounts if one.day.startswith(f"{year:04}-")}
    most = max((one.size for one in by_day.values()), default=0)
    first = date(year, 1, 1)
    monday = first - timedelta(days=first.weekday())
    weeks = list[Week]()
    while monday.year <= year and monday < date.max - _WEEK:
        weeks.append(_week(monday, year, by_day, most))
        monday += _WEEK
    years = sorted({int(one.day[:4]) for one in amounts} | {year}, reverse=True)
    return Calendar(year=year, weeks=tuple(weeks), total=len(by_day), years=tuple(years))


def _week(monday: date, year: int, by_day: Mapping[str, DayAmount], most: int) -> Week:
    days = [monday + timedelta(days=number) for number in range(7)]
    begins = next((day for day in days if day.day == 1 and day.year == year), None)
    return Week(
        month=calendar.month_abbr[begins.month] if begins else "",
        days=tuple(
            _cell(day, by_day.get(day.isoformat()), most) if day.year == year else None
            for day in days
        ),
    )


def _cell(day: date, amount: DayAmount | None, most: int) -> Cell:
    name = f"{day.day} {calendar.month_abbr[day.month]}"
    if amount is None:
        return Cell(day.isoformat(), 0, name)
    return Cell(day.isoformat(), level_of(amount.size, most), f"{name}: {_size(amount.size)}")


def level_of(size: int, most: int) -> int:
    """Return the shade of a day, 1 to 4: by the square root, so that one long day does not make all
    others pale."""
    return min(LEVELS, 1 + int((LEVELS - 1) * (size / most) ** 0.5)) if most else 1


def name_of_day(day: str) -> str:
    """Return a day as `Sunday, 1 November 2026`."""
    found = date.fromisoformat(day)
    weekday, month = calendar.day_name[found.weekday()], calendar.month_name[found.month]
    return f"{weekday}, {found.day} {month} {found.year}"


def _days(memory: Memory, days: Sequence[str], most: int) -> tuple[tuple[ShownDay, ...], bool]:
    """Return some adjacent days with their entries, and whether entries are left out."""
    if not days:
        return (), False
    found = memory.recent(most + 1, since=min(days), until=max(days))
    entries = _fitting(shown_entries(memory, found[:most]))
    shown = tuple(
        ShownDay(day, name_of_day(day), tuple(of_day))
        for day, of_day in groupby(entries, lambda entry: entry.day)
    )
    return shown, len(found) > len(entries)


def _fitting(entries: Sequence[ShownEntry]) -> Sequence[ShownEntry]:
    """Return the first entries that fit on a page, at least one."""
    total = accumulate(len(entry.text) for entry in entries)
    return entries[: max(1, sum(size <= MOST_CHARACTERS for size in total))]


def _year(text: str) -> int:
    if len(text) == 4 and text.isascii() and text.isdigit() and int(text):
        return int(text)
    raise FilterError(f"{text!r} is not a year.", argument="year", hint="Write it as 2026.")


def _size(size: int) -> str:
    return f"{size:,} bytes" if size < 1000 else f"{size / 1000:.1f} KB"


def _timeline(request: Request) -> Response:
    memory: Memory = request.app.state.site.memory
    given = request.query_params
    model = timeline_page(memory, given.get("year", ""), given.get("until", ""))
    return page(request, "timeline.html", model)


def _show_day(request: Request) -> Response:
    memory: Memory = request.app.state.site.memory
    return page(request, "day.html", day_page(memory, request.path_params["day"]))


routes = [Route("/timeline", _timeline), Route("/day/{day}", _show_day)]
