"""Several processes that share one port: they are started, replaced when they die, and stopped."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from clawmark.model.errors import ConfigError
from clawmark.serve.metrics import Metrics

RESTART_SECONDS = 1.0
"""Between two starts of the same worker."""


class Workers:
    """The worker processes; `work` runs in each of them with its number, and returns its exit code.

    They are forked before anything is opened or any thread is started."""

    def __init__(self, count: int, metrics: Metrics, work: Callable[[int], int]) -> None:
        if not hasattr(os, "fork"):
            raise ConfigError(
                "Several workers need a POSIX system.",
                key="serve.workers",
                hint="Set serve.workers to 1, and start several servers on different ports.",
            )
        self._count = count
        self._metrics = metrics
        self._work = work
        self._running = dict[int, int]()
        """The number of each worker by its process."""
        self._started = dict[int, float]()
        self._is_stopping = False

    def run(self) -> int:
        """Run until a signal arrives; return 0, or the highest exit code of a worker after it."""
        for name in ("SIGTERM", "SIGINT", "SIGHUP"):
            signal.signal(getattr(signal, name), self._stop)
        for number in range(self._count):
            self._start(number)
        code = 0
        while self._running:
            try:
                process, status = _wait()
            except ChildProcessError:
                break
            if process not in self._running:
                continue
            number = self._running.pop(process)
            self._metrics.clear_gauges(number)
            ended = os.waitstatus_to_exitcode(status)
            if self._is_stopping:
                code = max(code, ended if ended >= 0 else 1)
            else:
                self._restart(number, ended)
        return code

    def _restart(self, number: int, ended: int) -> None:
        reason = f"signal {-ended}" if ended < 0 else f"exit code {ended}"
        sys.stderr.write(f"clawmark: worker {number} ended ({reason}) and is started again.\n")
        wait = self._started[number] + RESTART_SECONDS - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        if not self._is_stopping:
            self._start(number)

    def _start(self, number: int) -> None:
        self._started[number] = time.monotonic()
        sys.stderr.flush()
        process = _fork()
        if process:
            self._running[process] = number
            if self._is_stopping:  # a signal arrived between the decision and the fork
                os.kill(process, signal.SIGTERM)
            return
        code = 1
        try:
            for name in ("SIGTERM", "SIGINT", "SIGHUP"):
                signal.signal(getattr(signal, name), signal.SIG_DFL)
            self._metrics.worker = number
            code = self._work(number)
        finally:
            sys.stderr.flush()
            os._exit(code)

    def _stop(self, number: int, _: object) -> None:
        self._is_stopping = True
        for process in list(self._running):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)


def _fork() -> int:
    if sys.platform == "win32":
        raise NotImplementedError
    return os.fork()


def _wait() -> tuple[int, int]:
    if sys.platform == "win32":
        raise NotImplementedError
    return os.wait()
