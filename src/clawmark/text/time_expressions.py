"""Find the times named in an English question: "last week", "in October", "four weeks ago".

Words that are also verbs or names ("may", "march", "june") count only with a preposition, a day or
a year."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date, timedelta

from clawmark.text.dates import MONTHS

MAX_CHARACTERS = 2000
MAX_RANGES = 8

Range = tuple[str, str]
_Days = tuple[date, date] | None
_Reader = Callable[[re.Match[str], date], _Days]

_NUMBERS = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTH = "|".join(MONTHS)
_SHORT = "jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec"
_AMBIGUOUS = ("march", "april", "may", "june", "august")
"""Months that are also verbs, adjectives or names."""
_UNAMBIGUOUS = "|".join(month for month in MONTHS if month not in _AMBIGUOUS)
_BEFORE = r"in|on|last|this|next|past|since|during|until|till|from|by|around|early|mid|late|of"
_YEAR = r"(?P<year>(?:19|20|21)[0-9]{2})(?![0-9-])"
_DAY = r"(?P<day>[0-3]?[0-9])"
_COUNT = (
    r"(?P<count>[0-9]{1,4}|an?|"
    + "|".join(_NUMBERS[1:])
    + r"|(?:a )?couple(?: of)?|(?:a )?few|several)"
)
_UNIT = r"(?P<unit>day|week|month|year)s?"


def time_expressions(text: str, today: str) -> list[Range]:
    """Return up to eight ranges of days, first and last included, that a text names."""
    now = date.fromisoformat(today)
    left = text[:MAX_CHARACTERS].replace("’", "'")
    found: list[Range] = []
    for pattern, read in _READERS:
        for match in pattern.finditer(left):
            try:
                days = read(match, now)
            except (ValueError, OverflowError):
                continue
            if days is None:
                continue
            found.append((days[0].isoformat(), days[1].isoformat()))
            # Blank the match, so that the year of a date is not also read as a year.
            left = left[: match.start()] + " " * (match.end() - match.start()) + left[match.end() :]
    return list(dict.fromkeys(found))[:MAX_RANGES]


def _iso_day(match: re.Match[str], now: date) -> _Days:
    return _range(match, day := date.fromisoformat(match["iso"]), day, now)


def _iso_month(match: re.Match[str], now: date) -> _Days:
    return _month_of(int(match["iso"][:4]), int(match["iso"][5:]))


def _day_of_month(match: re.Match[str], now: date) -> _Days:
    """Read `3 May`, `May 3rd, 2025`, `the 3rd of May`; without a year, the last such day."""
    word, day, year = match["month"], int(match["day"]), match["year"]
    month = _month_number(word)
    if word in ("may", "march", "mar") and not (
        _is_preposition(match["prep"]) or year or match["end"] or match["ordinal"]
    ):
        return None  # "the 3 may fail", "you may 3 times"
    if year:
        return _range(match, date(int(year), month, day), date(int(year), month, day), now)
    for back in range(5):  # a 29 February may be four years back
        if _is_date(now.year - back, month, day) and date(now.year - back, month, day) <= now:
            exact = date(now.year - back, month, day)
            return _range(match, exact, exact, now)
    return None


def _is_preposition(word: str | None) -> bool:
    """Whether a day certainly follows the word; "of" also precedes "the 3"."""
    return word is not None and word.lower() != "of"


def _named_month(match: re.Match[str], now: date) -> _Days:
    """Read `in October`, `October 2025`, `last May`; without a year, the last that has begun."""
    month, before = _month_number(match["month"]), (match["prep"] or "").lower()
    if match["year"]:
        return _range(match, *_month_of(int(match["year"]), month), now)
    year = now.year if month <= now.month else now.year - 1
    if before == "next":
        year = now.year if month > now.month else now.year + 1
    elif before in ("last", "past") and (year, month) == (now.year, now.month):
        year -= 1
    return _range(match, *_month_of(year, month), now)


def _year(match: re.Match[str], now: date) -> _Days:
    year = int(match["year"])
    return _range(match, date(year, 1, 1), date(year, 12, 31), now)


def _quarter(match: re.Match[str], now: date) -> _Days:
    quarter = int(match["quarter"])
    year = (
        int(match["year"])
        if match["year"]
        else now.year
        if (quarter - 1) * 3 < now.month
        else now.year - 1
    )
    return date(year, quarter * 3 - 2, 1), _month_of(year, quarter * 3)[1]


def _near_day(match: re.Match[str], now: date) -> _Days:
    words = " ".join(match[0].lower().split())
    if "before yesterday" in words:
        back = 2
    elif "tomorrow" in words:
        back = -1
    else:
        back = 1 if "yesterday" in words or words == "last night" else 0
    day = now - timedelta(days=back)
    return _range(match, day, day, now)


def _ago(match: re.Match[str], now: date) -> _Days:
    """Read `four weeks ago`, as exact as its unit; `a few` is two to five."""
    low, high = _counted(match["count"])
    unit = match["unit"].lower()
    slack = {"day": 0, "week": 3, "month": 15, "year": 182}[unit]
    slack = slack if low == high else slack // 2
    return _back(now, high, unit) - timedelta(days=slack), min(
        now, _back(now, low, unit) + timedelta(days=slack)
    )


def _last_some(match: re.Match[str], now: date) -> _Days:
    """Read `the past three months`, up to today."""
    _, high = _counted(match["count"])
    return _back(now, high, match["unit"].lower()), now


def _unit(match: re.Match[str], now: date) -> _Days:
    """Read `last week`, `this month`, `next year`."""
    before, unit = match["which"].lower(), match["unit"].lower()
    step = {"last": -1, "previous": -1, "past": -1, "next": 1, "coming": 1}.get(before, 0)
    if unit == "week":
        monday = now - timedelta(days=now.weekday()) + timedelta(weeks=step)
        return _range(match, monday, monday + timedelta(days=6), now)
    if unit == "weekend":
        saturday = now - timedelta(days=now.weekday()) + timedelta(days=5, weeks=step)
        return _range(match, saturday, saturday + timedelta(days=1), now)
    if unit == "month":
        return _range(match, *_month_of(*_shifted(now.year, now.month, step)), now)
    if unit == "quarter":
        year, month = _shifted(now.year, (now.month - 1) // 3 * 3 + 1, step * 3)
        return _range(match, date(year, month, 1), _month_of(year, month + 2)[1], now)
    return _range(match, date(now.year + step, 1, 1), date(now.year + step, 12, 31), now)


def _weekday(match: re.Match[str], now: date) -> _Days:
    """Read a weekday: `on Monday` may be today, `last Monday` is before and `next` after it."""
    before, number = match["prep"].lower(), _WEEKDAYS.index(match["weekday"].lower())
    back = (now.weekday() - number) % 7
    if before in ("last", "past") and back == 0:
        back = 7
    if before in ("next", "coming"):
        back -= 7
    day = now - timedelta(days=back)
    return _range(match, day, day, now)


def _range(match: re.Match[str], first: date, last: date, now: date) -> _Days:
    """Return first to last, or first to today if the expression begins with "since"."""
    groups = match.groupdict()
    begins = groups.get("prep") or groups.get("since") or ""
    return (first, now) if begins.lower() == "since" and first <= now else (first, last)


def _counted(text: str) -> tuple[int, int]:
    words = text.lower().removeprefix("a ").split()
    if words[0] == "couple":
        return 2, 2
    if words[0] in ("few", "several"):
        return 2, 5
    if words[0] in ("a", "an"):
        return 1, 1
    number = int(words[0]) if words[0].isdigit() else _NUMBERS.index(words[0])
    return number, number


def _back(now: date, count: int, unit: str) -> date:
    if unit in ("day", "week"):
        return now - timedelta(days=count * (7 if unit == "week" else 1))
    year, month = _shifted(now.year, now.month, -count * (12 if unit == "year" else 1))
    return date(year, month, min(now.day, monthrange(year, month)[1]))


def _shifted(year: int, month: int, months: int) -> tuple[int, int]:
    whole = year * 12 + month - 1 + months
    if not 12 <= whole < 120_000:
        raise OverflowError
    return whole // 12, whole % 12 + 1


def _month_of(year: int, month: int) -> tuple[date, date]:
    return date(year, month, 1), date(year, month, monthrange(year, month)[1])


def _month_number(word: str) -> int:
    return 1 + [month[:3] for month in MONTHS].index(word[:3].lower())


def _is_date(year: int, month: int, day: int) -> bool:
    return year > 0 and 1 <= day <= monthrange(year, month)[1]


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE | re.ASCII)


_PREP = rf"(?:\b(?P<prep>{_BEFORE})\s+(?:the\s+)?)"
_ORDINAL = r"(?P<ordinal>st|nd|rd|th)?"
_END = r"(?P<end>(?=\s*(?:[?.!,;:)]|$)))?"
_READERS: tuple[tuple[re.Pattern[str], _Reader], ...] = (
    (
        _pattern(
            r"(?:\b(?P<prep>since)\s+)?(?<![\d-])(?P<iso>(?:19|20|21)\d\d-\d\d-\d\d)(?![\d-])"
        ),
        _iso_day,
    ),
    (_pattern(r"(?<![\d-])(?P<iso>(?:19|20|21)\d\d-(?:0[1-9]|1[0-2]))(?![\d-])"), _iso_month),
    (
        _pattern(
            rf"{_PREP}?(?<![\d.,-])\b{_DAY}{_ORDINAL}(?:\s+of)?\s+"
            rf"(?P<month>{_MONTH}|{_SHORT})\b\.?(?:,?\s+{_YEAR})?{_END}"
        ),
        _day_of_month,
    ),
    (
        _pattern(
            rf"{_PREP}?\b(?P<month>{_MONTH}|{_SHORT})\b\.?\s+(?:the\s+)?{_DAY}"
            rf"(?![0-9:.%-]\d|\d){_ORDINAL}\b(?:,?\s+{_YEAR})?{_END}"
        ),
        _day_of_month,
    ),
    (_pattern(rf"{_PREP}?\b(?P<month>{_MONTH}|{_SHORT})\b\.?(?:\s+of)?,?\s+{_YEAR}"), _named_month),
    (_pattern(rf"{_PREP}(?P<month>{_MONTH})\b(?P<year>)"), _named_month),
    (_pattern(rf"(?P<prep>)\b(?P<month>{_UNAMBIGUOUS})\b(?P<year>)"), _named_month),
    (_pattern(rf"\bQ(?P<quarter>[1-4])\b(?:\s+(?:of\s+)?{_YEAR})?"), _quarter),
    (
        _pattern(
            rf"\b(?P<prep>in|during|since|throughout|back in|of|early|late|mid|around)[\s-]+{_YEAR}"
        ),
        _year,
    ),
    (
        _pattern(r"\bday before yesterday\b|\blast night\b|\bthis (?:morning|afternoon|evening)\b"),
        _near_day,
    ),
    (_pattern(r"(?:\b(?P<prep>since)\s+)?\b(?:yesterday|today|tonight|tomorrow)\b"), _near_day),
    (_pattern(rf"\b{_COUNT}\s+{_UNIT}\s+(?:ago|back|earlier)\b"), _ago),
    (_pattern(rf"\b(?:last|past|previous)\s+{_COUNT}\s+{_UNIT}\b"), _last_some),
    (
        _pattern(
            r"(?:\b(?P<since>since)\s+)?\b(?P<which>last|past|previous|this|next|coming)\s+"
            r"(?P<unit>weekend|week|month|quarter|year)\b(?!-)"
        ),
        _unit,
    ),
    (
        _pattern(
            r"\b(?P<prep>on|last|past|this|next|coming|since)\s+"
            rf"(?P<weekday>{'|'.join(_WEEKDAYS)})\b"
        ),
        _weekday,
    ),
)
