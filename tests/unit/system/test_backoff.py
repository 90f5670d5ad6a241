"""Waits between attempts double up to a limit."""

from __future__ import annotations

from clawmark.system.backoff import Backoff


def test_waits_double_up_to_the_longest() -> None:
    backoff = Backoff(first=0.5, longest=3.0)
    assert [backoff.wait(attempt) for attempt in range(1, 6)] == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_wait_is_never_shorter_than_the_server_asks() -> None:
    backoff = Backoff(first=0.5, longest=3.0)
    assert backoff.wait(1, at_least=30.0) == 30.0
    assert backoff.wait(3, at_least=1.0) == 2.0


def test_jitter_lengthens_a_wait_by_at_most_a_fifth() -> None:
    backoff = Backoff(first=1.0, longest=8.0)
    assert backoff.wait(1, jitter=0.5) == 1.1
    assert backoff.wait(1, jitter=1.0) == 1.2
