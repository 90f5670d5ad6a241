"""Cancel a call that runs in a worker thread.

The thread runs the call in a `Cancellation` and asks `check_cancelled` before each step that takes
time. A thread without one is never cancelled. Neither `contextvars` nor `threading` is used,
because a cold search imports this module.
"""

from __future__ import annotations

from _thread import _local
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Cancelled(BaseException):
    """Raised in the worker thread of a cancelled call.

    Not an `Exception`, so that code which turns failures into answers lets it pass."""


class Cancellation:
    """Runs one call, which any thread may cancel."""

    def __init__(self) -> None:
        self.is_cancelled = False
        self._wake: Callable[[], None] | None = None

    def cancel(self) -> None:
        """Cancel the call; from any thread."""
        self.is_cancelled = True
        wake = self._wake
        if wake is not None:
            wake()

    def run(self, call: Callable[[], T]) -> T:
        """Run the call in this thread; raises Cancelled at its next check after `cancel`."""
        _current.cancellation = self
        try:
            check_cancelled()
            return call()
        finally:
            _current.cancellation = None

    def on_cancel(self, wake: Callable[[], None] | None) -> None:
        """Set the function that interrupts what the thread waits for now."""
        self._wake = wake


class _Current(_local):
    cancellation: Cancellation | None = None


_current = _Current()


def current_cancellation() -> Cancellation | None:
    """Return the cancellation that this thread runs in, if any."""
    return _current.cancellation


def is_cancelled() -> bool:
    """Whether the call of this thread has been cancelled."""
    cancellation = _current.cancellation
    return cancellation is not None and cancellation.is_cancelled


def check_cancelled() -> None:
    """Raise Cancelled if the call of this thread has been cancelled."""
    if is_cancelled():
        raise Cancelled
