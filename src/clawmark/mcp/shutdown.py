"""How long a server lives: until it is told to stop, its input ends, or the program that started it
is gone.

In: signals. Out: an `Ending` to wait for, with the exit code. Nothing here wakes up before there is
a reason to."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import signal
import sys
import threading
from contextlib import suppress

PARENT_GONE = getattr(signal, "SIGUSR1", None)
LEAVING_SECONDS = 2.0


class Ending:
    """Comes once, with an exit code: 0, or 128 + n after signal n."""

    def __init__(self) -> None:
        self.code = 0
        self._has_come = asyncio.Event()

    def come(self, code: int = 0) -> None:
        if not self._has_come.is_set():
            self.code = code
            self._has_come.set()

    async def wait(self) -> None:
        await self._has_come.wait()


def ends_on_signals() -> Ending:
    """An ending that comes with a signal, where the system has signals."""
    ending, loop = Ending(), asyncio.get_running_loop()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is None or signal.getsignal(number) == signal.SIG_IGN:  # nohup's choice is kept
            continue
        with suppress(NotImplementedError, RuntimeError):  # Windows; a loop beside the main thread
            loop.add_signal_handler(number, ending.come, 128 + number)
    return ending


def follow_parent(ending: Ending) -> None:
    """End with the parent also when somebody else still holds our input open; Linux can tell,
    elsewhere input must do.

    The signal is sent when the *thread* that started us ends, so the handler looks whether the
    process is really gone."""
    if sys.platform != "linux" or PARENT_GONE is None:
        return

    parent = os.getppid()

    def look() -> None:
        if os.getppid() != parent:
            ending.come()

    with suppress(RuntimeError):
        asyncio.get_running_loop().add_signal_handler(PARENT_GONE, look)
        set_parent_death_signal = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(set_parent_death_signal, int(PARENT_GONE), 0, 0, 0)


def live_long() -> None:
    """Collect little and often: a command hardly ever looks for cycles, but a server would pause
    for it, and grow.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(2_000, 10, 10)


def leave_soon(code: int) -> None:
    """End the process in a moment, whatever is still at work: a host waits for its servers, and
    files are whole any time.
    """
    timer = threading.Timer(LEAVING_SECONDS, os._exit, (code,))
    timer.daemon = True
    timer.start()
