"""Parse the moment that a version is wanted from: a day, a time, or words such as "yesterday"."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

from clawmark.model.errors import FilterError
from clawmark.text.filters import parse_day
from clawmark.text.time_expressions import time_expressions


def parse_moment(text: str, now: datetime) -> datetime:
    """Return a time as it is, and the end of a day; in the zone of `now`, unless it names one.

    Days are `2026-11-01`, `7d`, `2w`, "yesterday", "last week" and the like."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        moment = None
    if moment is not None and len(text.strip()) > len("2026-11-01"):
        return moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
    today = now.date().isoformat()
    named = time_expressions(text, today) if not text[:1].isdigit() else []
    day = named[0][1] if named else parse_day("The version", text, lambda: today)
    try:
        midnight = datetime.combine(date.fromisoformat(day), time(), tzinfo=now.tzinfo)
        return midnight + timedelta(days=1)
    except (ValueError, OverflowError):  # no day at all, or the last one there is
        raise FilterError(
            f"The version {text[:40]!a} is not a day.", argument="version", hint="Write YYYY-MM-DD."
        ) from None
