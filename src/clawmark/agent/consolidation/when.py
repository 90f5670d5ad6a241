"""Find the days, months, weekdays and times of day that a statement names, in English and German.

`time_expressions` reads questions, which look back. Statements look ahead: "on 3 March" in a log of
February is the next one."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, timedelta
from typing import Literal, NamedTuple, TypeAlias

from clawmark.text.dates import MONTHS, WEEKDAYS, is_day

WhenKind: TypeAlias = Literal["day", "month", "weekday", "time"]
_GERMAN_MONTHS = """
    januar februar märz april mai juni juli august september oktober november dezember
"""
_GERMAN_WEEKDAYS = "montag dienstag mittwoch donnerstag freitag samstag sonntag"
_MONTHS_DE, _WEEKDAYS_DE = _GERMAN_MONTHS.split(), _GERMAN_WEEKDAYS.split()
_NUMBER_OF_MONTH = {name: number for number, name in enumerate(MONTHS, 1)} | {
    name: number for number, name in enumerate(_MONTHS_DE, 1)
}
_SHORT = {name[:3]: number for name, number in _NUMBER_OF_MONTH.items()} | {"sept": 9, "mär": 3}
_NUMBER_OF_WEEKDAY = {name: number for number, name in enumerate(WEEKDAYS)} | {
    name: number for number, name in enumerate(_WEEKDAYS_DE)
}
_NAME = "|".join(sorted(_NUMBER_OF_MONTH, key=len, reverse=True))
_ANY_NAME = _NAME + "|" + "|".join(sorted(_SHORT, key=len, reverse=True))
_WEEKDAY = "|".join(_NUMBER_OF_WEEKDAY)
_YEAR = r"(?:19|20|21)[0-9]{2}"
_HOUR = r"(?:[01]?\d|2[0-3])"
_PREPOSITION = (
    r"in|on|at|to|until|till|by|for|from|since|of|early|mid|late|next|this|before|after|"
    r"im|am|um|bis|zum|auf|ab|seit|vom|den|der|nächsten|nächster|anfang|mitte|ende"
)
_PATTERN = re.compile(
    rf"""
    (?<![\d-])(?P<iso>{_YEAR}-\d\d-\d\d)(?![\d-])
  | (?<![\d.])(?P<gday>\d{{1,2}})\.(?P<gmonth>\d{{1,2}})\.(?P<gyear>{_YEAR})?(?!\d)
  | (?<![\d.:])(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?\ (?:of\ )?(?P<month>(?:{_ANY_NAME})\b)\.?
    (?:,?\ (?P<year>{_YEAR}))?
  | \b(?P<month2>(?:{_ANY_NAME})\b)\.?\ (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\b(?![:.]\d)
    (?:,?\ (?P<year2>{_YEAR}))?
  | (?:(?<=\b)(?P<prep>(?:{_PREPOSITION})\ )|(?<=:\ ))(?P<month3>{_NAME})\b
    (?!\ \d{{1,2}}(?!\d))(?:\ (?P<year3>{_YEAR}))?
  | \b(?P<month4>{_NAME})\ (?P<year4>{_YEAR})\b
  | \b(?P<weekday>{_WEEKDAY})s?\b
  | (?<![\d:.])
    (?P<time>{_HOUR}[:.][0-5]\d(?=\ (?:am|pm|uhr)\b)|{_HOUR}:[0-5]\d|{_HOUR}(?=\ ?(?:am|pm|uhr)\b))
    (?P<half>\ ?(?:am|pm|uhr)\b)?
    """,
    re.IGNORECASE | re.VERBOSE,
)


class When(NamedTuple):
    """A time that a statement names, and where in the statement."""

    kind: WhenKind
    value: str
    """`2026-03-02`, `2026-03` (`03` if the year is not known), `friday` or `16:00`."""
    last: str
    """The last day it includes, YYYY-MM-DD; empty if it is not known or repeats."""
    start: int
    end: int


def find_times(text: str, said_on: str) -> list[When]:
    """Return the times in a statement of a day, in order; `said_on` is empty if it is not known.

    A day or month without a year is the first one that is not over on the day of the statement."""
    return [when for found in _PATTERN.finditer(text) if (when := _when(found, said_on))]


def _when(found: re.Match[str], said_on: str) -> When | None:
    """Return what one match of the pattern means."""
    start, end = found.start(), found.end()
    if found["prep"]:
        start += len(found["prep"])
    if found["iso"]:
        year, month, day = map(int, found["iso"].split("-"))
        return _day(year, month, day, start, end)
    if found["gday"]:
        month, day = int(found["gmonth"]), int(found["gday"])
        return _dated(found["gyear"], month, day, said_on, start, end)
    name = found["month"] or found["month2"]
    if name:
        day = int(found["day"] or found["day2"])
        return _dated(
            found["year"] or found["year2"], _month_number(name), day, said_on, start, end
        )
    name = found["month3"] or found["month4"]
    if name:
        return _month(found["year3"] or found["year4"], _month_number(name), said_on, start, end)
    if found["weekday"]:
        return _weekday(found["weekday"].lower(), said_on, start, end)
    return _time(found["time"], (found["half"] or "").strip().lower(), start, end)


def _day(year: int, month: int, day: int, start: int, end: int) -> When | None:
    if not is_day(year, month, day):
        return None
    value = f"{year:04}-{month:02}-{day:02}"
    return When(kind="day", value=value, last=value, start=start, end=end)


def _dated(
    year: str | None, month: int, day: int, said_on: str, start: int, end: int
) -> When | None:
    if year:
        return _day(int(year), month, day, start, end)
    if not said_on:
        is_possible = is_day(2024, month, day)
        value = f"{month:02}-{day:02}"
        unresolved = When(kind="day", value=value, last="", start=start, end=end)
        return unresolved if is_possible else None
    first = int(said_on[:4])
    for number in (first, first + 1):
        when = _day(number, month, day, start, end)
        if when is not None and when.value >= said_on:
            return when
    return None


def _month(year: str | None, month: int, said_on: str, start: int, end: int) -> When | None:
    if not year and not said_on:
        return When(kind="month", value=f"{month:02}", last="", start=start, end=end)
    number = int(year) if year else int(said_on[:4])
    if not year and month < int(said_on[5:7]):
        number += 1
    last = f"{number:04}-{month:02}-{monthrange(number, month)[1]:02}"
    return When(kind="month", value=last[:7], last=last, start=start, end=end)


def _weekday(name: str, said_on: str, start: int, end: int) -> When:
    number = _NUMBER_OF_WEEKDAY[name]
    last = ""
    if said_on:
        day = date.fromisoformat(said_on)
        last = (day + timedelta(days=(number - day.weekday()) % 7)).isoformat()
    return When(kind="weekday", value=WEEKDAYS[number], last=last, start=start, end=end)


def _time(text: str, half: str, start: int, end: int) -> When:
    hour, _, minute = text.replace(".", ":").partition(":")
    number = int(hour) % 12 + 12 * (half == "pm") if half in ("am", "pm") else int(hour)
    value = f"{number:02}:{minute or '00'}"
    return When(kind="time", value=value, last="", start=start, end=end)


def _month_number(name: str) -> int:
    lowered = name.lower()
    return _NUMBER_OF_MONTH.get(lowered) or _SHORT[lowered]
