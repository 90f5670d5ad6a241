"""Limit how long a hook waits: a hook that is late once is not called again by its host."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def within(seconds: float, call: Callable[[], _T], otherwise: Callable[[], _T]) -> _T:
    """Return what a call returns; after some seconds, what `otherwise` returns.

    The call is made in a thread of its own and is not stopped."""
    returned: list[_T] = []
    raised: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            returned.append(call())
        except BaseException as error:  # boundary of a thread; raised again below
            raised.append(error)
        finally:
            done.set()

    threading.Thread(target=run, name="clawmark-lancedb", daemon=True).start()
    if not done.wait(seconds):
        return otherwise()
    if raised:
        raise raised[0]
    return returned[0]
