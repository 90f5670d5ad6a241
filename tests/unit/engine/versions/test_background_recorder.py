"""The thread that records versions a moment after the last change."""

from __future__ import annotations

import threading

from clawmark.engine.versions.background_recorder import BackgroundRecorder


def test_changes_in_quick_succession_are_recorded_once() -> None:
    calls = list[str]()
    recorder = BackgroundRecorder(lambda: calls.append("recorded"), quiet=0.2, longest=60)
    for _ in range(100):
        recorder.request()
    assert recorder.wait_for_recording(30)
    recorder.close()
    assert calls == ["recorded"]


def test_changes_that_never_stop_are_recorded_after_a_while() -> None:
    done = threading.Event()
    recorder = BackgroundRecorder(done.set, quiet=60, longest=0.05)
    recorder.request()
    assert done.wait(30)
    recorder.close()


def test_closing_does_not_wait_for_changes_to_stop() -> None:
    calls = list[str]()
    recorder = BackgroundRecorder(lambda: calls.append("recorded"), quiet=3600, longest=3600)
    recorder.request()
    recorder.close()
    recorder.request()
    assert calls == []


def test_a_recorder_that_was_never_asked_starts_no_thread() -> None:
    before = threading.active_count()
    recorder = BackgroundRecorder(lambda: None)
    assert threading.active_count() == before
    recorder.close()


def test_the_thread_ends_when_nothing_is_left_and_starts_again() -> None:
    before = threading.active_count()
    calls = list[str]()
    recorder = BackgroundRecorder(lambda: calls.append("recorded"), quiet=0.01, longest=60)
    for times in (1, 2):
        recorder.request()
        pause = threading.Event()
        while len(calls) < times or threading.active_count() > before:
            pause.wait(0.01)
    recorder.close()
    assert calls == ["recorded", "recorded"]
