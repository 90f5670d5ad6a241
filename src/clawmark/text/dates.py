"""Find the day of a memory file, and the words in which people ask for it.

A daily log has its date only in its name, while questions use many forms ("in February", "on the
24th", "2026-02-24"), so these words are indexed with every passage of the file."""

from __future__ import annotations

import re
import time
from datetime import date as day
from functools import lru_cache

from clawmark.text.keywords.words import index_words

MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_ORDINAL_ENDS = {1: "st", 21: "st", 31: "st", 2: "nd", 22: "nd", 3: "rd", 23: "rd"}
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def utc_time(milliseconds: int) -> str:
    """Return a time since 1970 as `2026-11-15T09:30:00Z`; empty for 0 or a time out of range."""
    try:
        parts = time.gmtime(milliseconds / 1000) if milliseconds > 0 else None
    except (OverflowError, OSError, ValueError):
        return ""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", parts) if parts and parts.tm_year < 10_000 else ""


def date_of(path: str) -> str:
    """Return the day, YYYY-MM-DD, that the file name starts with, or an empty string."""
    name = path[max(path.rfind("/"), path.rfind(":")) + 1 :]
    date = name[:10]
    digits = date[:4] + date[5:7] + date[8:]
    if not (
        digits.isascii() and digits.isdigit() and len(digits) == 8 and date[4] == date[7] == "-"
    ):
        return ""
    if name[10:11].isdigit() or not is_day(int(date[:4]), int(date[5:7]), int(date[8:])):
        return ""
    return date


def day_of(path: str, source: str, heading: str) -> str:
    """Return the day of a passage: of its file's name, or of its last message."""
    return heading[-10:] if source == "sessions" else date_of(path)


def date_words(date: str) -> str:
    """Return the words for a day: `2026-02-24 24 24th february 2026 feb tuesday`."""
    year, month, number = map(int, date.split("-"))
    name = MONTHS[month - 1]
    ordinal = f"{number}{_ORDINAL_ENDS.get(number, 'th')}"
    return (
        f"{date} {number} {ordinal} {name} {year} {name[:3]} "
        f"{WEEKDAYS[day(year, month, number).weekday()]}"
    )


def keyword_context(path: str, heading: str) -> str:
    """Return the words indexed with a passage: its date, headings and path."""
    date, names = _path_words(path)
    return index_words(" ".join(filter(None, (date, heading, names))))


@lru_cache(maxsize=64)
def _path_words(path: str) -> tuple[str, str]:
    """Return the words of the date and of the names in a path."""
    date = date_of(path)
    names = re.findall(
        r"[^\W\d_]\w*", path.removesuffix(".md").removeprefix("memory/").replace("_", " ")
    )
    return date_words(date) if date else "", " ".join(names)


def is_day(year: int, month: int, day: int) -> bool:
    """Whether the day exists and is in the years 1900 to 2199."""
    if not (1900 <= year <= 2199 and 1 <= month <= 12):
        return False
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= day <= _DAYS[month - 1] + (leap and month == 2)
