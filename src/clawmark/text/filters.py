"""Parse the filters of a search; an invalid one raises `FilterError`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import NamedTuple

from clawmark.model.errors import FilterError, SpaceDenied
from clawmark.model.values import OWN_MEMORY, Filters

MAX_PATTERN = 500
_BACK = re.compile(r"([0-9]{1,4})([dw])", re.IGNORECASE)
_NEAR_DAYS = {"today": 0, "yesterday": 1}
_DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ][0-9:.,+\-Zz]*)?")


class AsOfTime(NamedTuple):
    """An earlier time that a search asks about."""

    end: datetime
    """What was recorded before this moment counts."""
    day: str
    """The day that counts as today, YYYY-MM-DD."""
    shown: str
    """The day, or the time in the user's zone if a time was given."""


def make_filters(
    *,
    since: str | None,
    until: str | None,
    path: str | None,
    source: str | None,
    today: Callable[[], str],
    space: str | None = None,
    has_spaces: bool = False,
) -> Filters:
    """Return the parsed filters; None and blank text mean that a filter was not given.

    `has_spaces` says that there are shared spaces; without them, SpaceDenied for the name of one.
    """
    first, last = parse_day("since", since, today), parse_day("until", until, today)
    if first and last and first > last:
        raise FilterError(
            f"since ({first}) is after until ({last}), so nothing can match.",
            argument="since",
            hint="Swap the two days.",
        )
    pattern = (path or "").strip()
    if len(pattern) > MAX_PATTERN or "\0" in pattern:
        raise FilterError(
            f"path must be a pattern of at most {MAX_PATTERN} characters without NUL.",
            argument="path",
            hint="Write a pattern such as memory/projects/**.",
        )
    return Filters(
        since=first,
        until=last,
        path=pattern,
        source=(source or "").strip(),
        space=_space((space or "").strip(), (source or "").strip(), has_spaces=has_spaces),
    )


def _space(space: str, source: str, *, has_spaces: bool) -> str:
    if not has_spaces and space not in ("", OWN_MEMORY):
        raise SpaceDenied(
            f"There is no shared space {space[:64]!a} here: no team is configured.",
            space=space,
            hint="Set team.uri and team.spaces.",
        )
    if source and space not in ("", OWN_MEMORY):
        raise FilterError(
            f"source is {source[:40]!a} and space is {space[:40]!a}: give one of them.",
            argument="source",
            hint="A source is a part of the workspace; a space is shared with others.",
        )
    return space if has_spaces else ""


def parse_day(name: str, given: str | None, today: Callable[[], str]) -> str:
    """Return YYYY-MM-DD for a day, a date and time, `yesterday`, or `7d` or `2w` before today."""
    text = (given or "").strip()
    if not text:
        return ""
    back, day = _BACK.fullmatch(text), _DAY.fullmatch(text)
    try:
        if text.lower() in _NEAR_DAYS:
            near = timedelta(days=_NEAR_DAYS[text.lower()])
            return (date.fromisoformat(today()) - near).isoformat()
        if back:
            days = int(back[1]) * (7 if back[2] in "wW" else 1)
            return (date.fromisoformat(today()) - timedelta(days=days)).isoformat()
        if day:
            return date.fromisoformat(day[1]).isoformat()
    except (ValueError, OverflowError):
        pass
    raise _wrong_day(name, text)


def _wrong_day(name: str, text: str) -> FilterError:
    return FilterError(
        f"{name} must be a day such as 2026-02-24, or days or weeks back such as 7d or 2w, not "
        f"{text[:40]!a}.",
        argument=name,
        hint="Write the day as YYYY-MM-DD.",
    )


def parse_as_of(given: str, now: datetime) -> AsOfTime:
    """Return the moment of `2026-03-01` or `7d` (the end of that day) or of an ISO 8601 time.

    Times without an offset are in the user's time zone. The future is today."""
    text, today = given.strip(), now.date().isoformat()
    if not text:
        raise _wrong_day("asOf", text)
    if "T" not in text and " " not in text:
        day = parse_day("asOf", text, lambda: today)
        try:
            end = _in_zone_of(now, date.fromisoformat(day) + timedelta(days=1))
        except OverflowError:  # the last day of the calendar
            end = now
        return AsOfTime(end=end, day=min(day, today), shown=day)
    parse_day("asOf", text, lambda: today)  # raises the error that names the forms
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = _with_zone(now, moment)
        moment = moment.astimezone(now.tzinfo)
    except (ValueError, OverflowError):
        raise FilterError(
            f"asOf must be a time such as 2026-03-01T18:00 or 2026-03-01T18:00+01:00, not "
            f"{text[:40]!a}.",
            argument="asOf",
            hint="Write the day as YYYY-MM-DD to get the end of that day.",
        ) from None
    day = min(moment.date().isoformat(), today)
    return AsOfTime(end=moment, day=day, shown=moment.isoformat(" ", timespec="minutes"))


def _in_zone_of(now: datetime, day: date) -> datetime:
    """Return the beginning of a day in the time zone of `now`."""
    return _with_zone(now, datetime(day.year, day.month, day.day))


def _with_zone(now: datetime, naive: datetime) -> datetime:
    if isinstance(now.tzinfo, timezone) and now.astimezone().utcoffset() == now.utcoffset():
        # The local time, which has another offset at another time of the year.
        return naive.astimezone()
    return naive.replace(tzinfo=now.tzinfo)
