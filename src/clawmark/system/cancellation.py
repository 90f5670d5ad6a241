"""Whether somebody still waits for what this thread does.

In: an `Asker`, lent to a worker thread for one call, who may leave at any time. Out: `go_on`, asked
before each step that takes time, which ends the call once he has left; and a way to wake a thread
that waits for somebody else. A thread without an asker works for itself and is never stopped. No
contextvars and no `threading`: a cold search imports this."""

from __future__ import annotations

from _thread import _local
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Abandoned(BaseException):
    """Nobody waits for this any more.

    No `Exception`: who turns failures into answers must let it pass.
    """


class Asker:
    """Who awaits a call."""

    def __init__(self) -> None:
        self.has_left = False
        self._wake: Callable[[], None] | None = None

    def leave(self) -> None:
        """Wait no longer; from any thread."""
        self.has_left = True
        wake = self._wake
        if wake is not None:
            wake()

    def serve(self, verb: Callable[[], T]) -> T:
        """Do something in this thread for as long as it is wanted; raises Abandoned when that was
        not long enough.
        """
        _here.asker = self
        try:
            go_on()
            return verb()
        finally:
            _here.asker = None

    def wake_with(self, wake: Callable[[], None] | None) -> None:
        """What brings the thread back from where it waits now, when the asker leaves meanwhile."""
        self._wake = wake


class _Here(_local):
    asker: Asker | None = None


_here = _Here()


def current_asker() -> Asker | None:
    """For whom this thread works; None when it is for itself."""
    return _here.asker


def has_left() -> bool:
    """Whether this thread works for somebody who has left."""
    asker = _here.asker
    return asker is not None and asker.has_left


def go_on() -> None:
    """Raise Abandoned when nobody waits for this any more."""
    if has_left():
        raise Abandoned
