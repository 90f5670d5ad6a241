"""When a session is over without anybody saying so: a time in, the reason out.

A session ends at a certain hour of the day, or after nothing was said for so many minutes. Both are
decided when the next message comes. What ends with it is left to `conversation`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal, NamedTuple


class Rollover(NamedTuple):
    """How long a session may go on."""

    daily_hour: int | None = 4
    """The hour, where the user lives, at which the day's session ends; None for never."""
    idle_minutes: int = 0
    """0 for never."""


def rolled_over(last_ms: int, now: datetime, rollover: Rollover) -> Literal["daily", "idle"] | None:
    """Why a session that was last used then is over now; None when it goes on."""
    if last_ms <= 0:
        return None
    now_ms = int(now.timestamp() * 1000)
    if rollover.daily_hour is not None and last_ms < int(
        _last_turn(now, rollover.daily_hour).timestamp() * 1000
    ):
        return "daily"
    if 0 < rollover.idle_minutes * 60_000 < now_ms - last_ms:
        return "idle"
    return None


def _last_turn(now: datetime, hour: int) -> datetime:
    """The last time it was that hour."""
    turn = now.replace(hour=hour % 24, minute=0, second=0, microsecond=0)
    return turn if turn <= now else turn - timedelta(days=1)
