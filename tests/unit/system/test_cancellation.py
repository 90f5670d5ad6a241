"""Who left is heard of before the next step, in his own thread only, and whoever waits for others
is woken.
"""

from __future__ import annotations

import threading

import pytest

from clawmark.system.cancellation import Abandoned, Asker, current_asker, go_on, has_left


def test_a_thread_that_works_for_itself_goes_on() -> None:
    assert current_asker() is None
    assert not has_left()
    go_on()


def test_what_is_asked_for_is_done_and_the_asker_forgotten() -> None:
    asker = Asker()
    assert asker.serve(current_asker) is asker
    assert current_asker() is None


def test_nothing_begins_for_an_asker_who_has_left() -> None:
    asker, done = Asker(), list[int]()
    asker.leave()
    with pytest.raises(Abandoned):
        asker.serve(lambda: done.append(1))
    assert done == []
    assert current_asker() is None


def test_the_next_step_is_not_taken() -> None:
    asker, done = Asker(), list[str]()

    def steps() -> None:
        done.append("first")
        asker.leave()
        go_on()
        done.append("second")

    with pytest.raises(Abandoned):
        asker.serve(steps)
    assert done == ["first"]


def test_an_answer_that_turns_failures_into_words_lets_it_pass() -> None:
    assert not issubclass(Abandoned, Exception)


def test_other_threads_do_not_hear_of_it() -> None:
    asker, heard = Asker(), list[bool]()

    def beside() -> None:
        thread = threading.Thread(target=lambda: heard.append(has_left()))
        asker.leave()
        thread.start()
        thread.join()

    asker.serve(beside)
    assert heard == [False]


def test_a_thread_that_waits_is_woken() -> None:
    asker, woken = Asker(), threading.Event()
    asker.wake_with(woken.set)
    asker.leave()
    assert woken.is_set()
