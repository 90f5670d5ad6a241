"""Stop a server on a signal, at the end of its input, or when its parent process dies."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import signal
import sys
import threading
from contextlib import suppress

PARENT_DEATH_SIGNAL = getattr(signal, "SIGUSR1", None)
EXIT_SECONDS = 2.0


class Shutdown:
    """A request to stop, made once, with an exit code: 0, or 128 + n after signal n."""

    def __init__(self) -> None:
        self.code = 0
        self._requested = asyncio.Event()

    def request(self, code: int = 0) -> None:
        if not self._requested.is_set():
            self.code = code
            self._requested.set()

    async def wait(self) -> None:
        await self._requested.wait()


def shutdown_on_signals() -> Shutdown:
    """Return a shutdown that SIGINT, SIGTERM and SIGHUP request, where the platform has them."""
    shutdown, loop = Shutdown(), asyncio.get_running_loop()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is None or signal.getsignal(number) == signal.SIG_IGN:  # ignored by nohup
            continue
        # Not available on Windows, nor outside the main thread.
        with suppress(NotImplementedError, RuntimeError):
            loop.add_signal_handler(number, shutdown.request, 128 + number)
    return shutdown


def stop_when_parent_dies(shutdown: Shutdown) -> None:
    """Also stop when the parent is gone but another process holds our input open (Linux only).

    The kernel sends the signal when the *thread* that started us ends, so the handler checks
    whether the process is gone."""
    if sys.platform != "linux" or PARENT_DEATH_SIGNAL is None:
        return
    parent = os.getppid()

    def check_parent() -> None:
        if os.getppid() != parent:
            shutdown.request()

    with suppress(RuntimeError):
        asyncio.get_running_loop().add_signal_handler(PARENT_DEATH_SIGNAL, check_parent)
        set_parent_death_signal = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(set_parent_death_signal, int(PARENT_DEATH_SIGNAL), 0, 0, 0)


def tune_garbage_collection() -> None:
    """Collect in small steps: commands almost switch the collector off, but a server would grow."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(2_000, 10, 10)


def exit_after_delay(code: int) -> None:
    """End the process in two seconds even if threads are still working.

    Hosts wait for their servers to exit, and every write leaves the files complete."""
    timer = threading.Timer(EXIT_SECONDS, os._exit, (code,))
    timer.daemon = True
    timer.start()
