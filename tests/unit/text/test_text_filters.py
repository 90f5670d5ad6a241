from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from clawmark.model.errors import FilterError
from clawmark.model.values import Filters
from clawmark.text.filters import make_filters, parse_as_of


def today() -> str:
    return "2026-02-24"


def filters(**given: str | None) -> Filters:
    blank: dict[str, Any] = dict.fromkeys(("since", "until", "path", "source"))
    return make_filters(**(blank | given), today=today)


@pytest.mark.parametrize(
    ("given", "day"),
    [
        ("2026-02-01", "2026-02-01"),
        (" 2026-02-01 ", "2026-02-01"),
        ("2026-02-01T10:03:00Z", "2026-02-01"),
        ("2026-02-01 10:03", "2026-02-01"),
        ("7d", "2026-02-17"),
        ("0d", "2026-02-24"),
        ("2W", "2026-02-10"),
    ],
)
def test_a_day_is_a_date_or_a_number_of_days_or_weeks_back(given: str, day: str) -> None:
    assert filters(since=given).since == day


@pytest.mark.parametrize(
    "given",
    ["soon", "2026-02-30", "2026-2-1", "20260201", "7", "d", "-7d", "99999w", "1.5d", "２d"],
)
def test_an_invalid_day_is_refused_with_the_name_of_the_filter(given: str) -> None:
    with pytest.raises(FilterError, match="until must be a day") as raised:
        filters(until=given)
    assert raised.value.argument == "until"


def test_blank_filters_count_as_not_given() -> None:
    assert filters(since="", until=" ", path=None, source="") == Filters()


def test_days_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(FilterError, match=r"since \(2026-03-01\) is after until \(2026-02-01\)"):
        filters(since="2026-03-01", until="2026-02-01")


def test_a_pattern_that_is_too_long_is_refused() -> None:
    with pytest.raises(FilterError, match="500 characters"):
        filters(path="a" * 501)


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("given", "end", "day"),
    [
        ("2026-03-01", "2026-03-02T00:00:00+01:00", "2026-03-01"),
        ("2026-03-29", "2026-03-30T00:00:00+02:00", "2026-03-29"),  # summer time begins
        (" 7d ", "2026-03-28T00:00:00+01:00", "2026-03-27"),
        ("2W", "2026-03-21T00:00:00+01:00", "2026-03-20"),
        ("0d", "2026-04-04T00:00:00+02:00", "2026-04-03"),
        ("2026-03-01T18:30", "2026-03-01T18:30:00+01:00", "2026-03-01"),
        ("2026-03-01 18:30:15", "2026-03-01T18:30:15+01:00", "2026-03-01"),
        ("2026-03-01T23:30Z", "2026-03-02T00:30:00+01:00", "2026-03-02"),
        ("2026-03-01T18:30-05:00", "2026-03-02T00:30:00+01:00", "2026-03-02"),
        ("2030-01-01", "2030-01-02T00:00:00+01:00", "2026-04-03"),
        ("9999-12-31", "2026-04-03T12:00:00+02:00", "2026-04-03"),
    ],
)
def test_a_day_ends_at_midnight_in_the_users_zone_and_a_time_is_itself(
    given: str, end: str, day: str
) -> None:
    now = datetime(2026, 4, 3, 12, tzinfo=BERLIN)
    parsed = parse_as_of(given, now)
    assert parsed.end == datetime.fromisoformat(end)
    assert parsed.day == day


@pytest.mark.parametrize(
    "given",
    ["", "tomorrow", "2026-02-30", "2026-03-01T25:00", "2026-03-01T", "7", "2026-03", "x" * 99],
)
def test_an_earlier_day_that_cannot_be_read_is_refused(given: str) -> None:
    with pytest.raises(FilterError, match="asOf must be") as caught:
        parse_as_of(given, datetime(2026, 4, 3, 12, tzinfo=BERLIN))
    assert caught.value.argument == "asOf" and len(caught.value.message) < 200


@pytest.mark.parametrize(("word", "day"), [("today", "2026-04-03"), ("Yesterday", "2026-04-02")])
def test_today_and_yesterday_are_days(word: str, day: str) -> None:
    assert parse_as_of(word, datetime(2026, 4, 3, 12, tzinfo=BERLIN)).shown == day
    found = make_filters(since=word, until="", path="", source="", today=lambda: "2026-04-03")
    assert found.since == day
