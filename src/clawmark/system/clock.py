"""The current time in a time zone."""

from __future__ import annotations

import time
from calendar import timegm
from datetime import datetime


def now_in(timezone: str) -> datetime:
    """Return the current time in a time zone such as `Europe/Berlin`; empty for the local one."""
    # `datetime.now()` counts nanoseconds and stays at the year 2262 for ever.
    seconds = timegm(time.gmtime())
    if not timezone:
        return datetime.fromtimestamp(seconds).astimezone()
    # Imported late: few people set a time zone.
    from zoneinfo import ZoneInfo

    return datetime.fromtimestamp(seconds, ZoneInfo(timezone))
