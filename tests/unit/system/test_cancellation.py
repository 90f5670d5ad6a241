"""A cancelled call stops before its next step, in its own thread only; a waiting one is woken."""

from __future__ import annotations

import threading

import pytest

from clawmark.system.cancellation import (
    Cancellation,
    Cancelled,
    check_cancelled,
    current_cancellation,
    is_cancelled,
)


def test_a_thread_without_a_cancellation_is_never_cancelled() -> None:
    assert current_cancellation() is None
    assert not is_cancelled()
    check_cancelled()


def test_a_call_runs_in_its_cancellation_until_it_ends() -> None:
    cancellation = Cancellation()
    assert cancellation.run(current_cancellation) is cancellation
    assert current_cancellation() is None


def test_a_call_cancelled_before_it_starts_does_not_run() -> None:
    cancellation, done = Cancellation(), list[int]()
    cancellation.cancel()
    with pytest.raises(Cancelled):
        cancellation.run(lambda: done.append(1))
    assert done == []
    assert current_cancellation() is None


def test_a_cancelled_call_stops_at_its_next_check() -> None:
    cancellation, done = Cancellation(), list[str]()

    def steps() -> None:
        done.append("first")
        cancellation.cancel()
        check_cancelled()
        done.append("second")

    with pytest.raises(Cancelled):
        cancellation.run(steps)
    assert done == ["first"]


def test_cancelled_is_not_caught_as_an_exception() -> None:
    assert not issubclass(Cancelled, Exception)


def test_other_threads_are_not_cancelled() -> None:
    cancellation, seen = Cancellation(), list[bool]()

    def call() -> None:
        thread = threading.Thread(target=lambda: seen.append(is_cancelled()))
        cancellation.cancel()
        thread.start()
        thread.join()

    cancellation.run(call)
    assert seen == [False]


def test_a_waiting_thread_is_woken() -> None:
    cancellation, woken = Cancellation(), threading.Event()
    cancellation.on_cancel(woken.set)
    cancellation.cancel()
    assert woken.is_set()
