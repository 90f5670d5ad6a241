"""Parse the filters of a search; an invalid one raises `FilterError`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta

from clawmark.model.errors import FilterError
from clawmark.model.values import Filters

MAX_PATTERN = 500
_BACK = re.compile(r"([0-9]{1,4})([dw])", re.IGNORECASE)
_DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ][0-9:.,+\-Zz]*)?")


def make_filters(
    *,
    since: str | None,
    until: str | None,
    path: str | None,
    source: str | None,
    today: Callable[[], str],
) -> Filters:
    """Return the parsed filters; None and blank text mean that a filter was not given."""
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
    return Filters(since=first, until=last, path=pattern, source=(source or "").strip())


def parse_day(name: str, given: str | None, today: Callable[[], str]) -> str:
    """Return YYYY-MM-DD for a day, a date and time, or `7d` or `2w` before today."""
    text = (given or "").strip()
    if not text:
        return ""
    back, day = _BACK.fullmatch(text), _DAY.fullmatch(text)
    try:
        if back:
            days = int(back[1]) * (7 if back[2] in "wW" else 1)
            return (date.fromisoformat(today()) - timedelta(days=days)).isoformat()
        if day:
            return date.fromisoformat(day[1]).isoformat()
    except (ValueError, OverflowError):
        pass
    raise FilterError(
        f"{name} must be a day such as 2026-02-24, or days or weeks back such as 7d or 2w, not "
        f"{text[:40]!a}.",
        argument=name,
        hint="Write the day as YYYY-MM-DD.",
    )
