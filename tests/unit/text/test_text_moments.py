"""The moment that a version is wanted from: days, times and words."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from clawmark.model.errors import FilterError
from clawmark.text.moments import parse_moment

NOW = datetime(2026, 11, 16, 14, 30, tzinfo=ZoneInfo("Europe/Berlin"))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-01", "2026-11-02T00:00:00+01:00"),
        ("2026-10-25", "2026-10-26T00:00:00+01:00"),  # the day has 25 hours
        ("2026-11-01T14:30", "2026-11-01T14:30:00+01:00"),
        ("2026-11-01 14:30:05", "2026-11-01T14:30:05+01:00"),
        ("2026-11-01T14:30Z", "2026-11-01T14:30:00+00:00"),
        ("today", "2026-11-17T00:00:00+01:00"),
        ("yesterday", "2026-11-16T00:00:00+01:00"),
        ("7d", "2026-11-10T00:00:00+01:00"),
        ("2w", "2026-11-03T00:00:00+01:00"),
        ("three days ago", "2026-11-14T00:00:00+01:00"),
    ],
)
def test_a_day_stands_for_its_end_and_a_time_for_itself(text: str, moment: str) -> None:
    assert parse_moment(text, NOW) == datetime.fromisoformat(moment)


@pytest.mark.parametrize("text", ["", " ", "gestern", "2026-13-01", "9999-12-31", "0d0", "-1"])
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(FilterError):
        parse_moment(text, NOW)
