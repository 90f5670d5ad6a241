"""Wait for a call for a limited time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from clawmark.system.cancellation import current_cancellation

_T = TypeVar("_T")


class TimeLimitExceeded(Exception):
    """The call took longer than it may; it goes on in its thread, and its result is dropped."""


def call_within(seconds: float, call: Callable[[], _T], name: str) -> _T:
    """Make a call in a thread of its own and return what it returns; raise what it raises.

    `name` is the name of the thread. Cancelling the caller cancels the call."""
    returned: list[_T] = []
    raised: list[BaseException] = []
    done = threading.Event()
    cancellation = current_cancellation()

    def run() -> None:
        try:
            returned.append(call() if cancellation is None else cancellation.run(call))
        except BaseException as error:  # the boundary of a thread: the caller gets it
            raised.append(error)
        finally:
            done.set()

    threading.Thread(target=run, name=f"clawmark-{name}", daemon=True).start()
    if not done.wait(seconds):
        raise TimeLimitExceeded(f"no answer within {seconds:g} s")
    if raised:
        raise raised[0]
    return returned[0]
