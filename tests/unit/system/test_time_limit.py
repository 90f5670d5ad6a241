"""Calls with a time limit."""

from __future__ import annotations

import threading

import pytest

from clawmark.system.time_limit import TimeLimitExceeded, call_within


def test_the_result_and_the_error_of_a_call_are_passed_on() -> None:
    assert call_within(60, lambda: 5, "test") == 5
    with pytest.raises(ZeroDivisionError):
        call_within(60, lambda: 1 / 0, "test")
    with pytest.raises(SystemExit):
        call_within(60, lambda: exec("raise SystemExit(3)"), "test")


def test_a_call_that_takes_too_long_is_abandoned() -> None:
    release = threading.Event()
    with pytest.raises(TimeLimitExceeded, match=r"0\.01 s"):
        call_within(0.01, release.wait, "test")
    release.set()
