"""Record the workspace in a thread, a moment after the last change.

Changes that follow each other quickly become one version. The thread starts with a change and ends
when there is nothing left to record, or with the memory; what it had not recorded by then is
recorded by the next sync, or by the next command that looks at the history."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

QUIET_SECONDS = 2.0
"""How long changes must have stopped."""
LONGEST_WAIT = 10.0
"""Changes that never stop are recorded after this time."""


class BackgroundRecorder:
    """Calls `record` after changes, in a thread of its own."""

    def __init__(
        self,
        record: Callable[[], None],
        *,
        quiet: float = QUIET_SECONDS,
        longest: float = LONGEST_WAIT,
    ) -> None:
        self._record = record
        self._quiet, self._longest = quiet, longest
        self._state = threading.Condition()
        self._first = self._last = 0.0
        self._is_closing = False
        self._recordings = 0
        self._thread: threading.Thread | None = None
        self.pid = os.getpid()

    def request(self) -> None:
        """Say that something changed."""
        if self.pid != os.getpid():
            return  # a forked child has neither the thread nor a lock it can trust
        with self._state:
            self._last = time.monotonic()
            self._first = self._first or self._last
            if self._thread is None and not self._is_closing:
                self._thread = threading.Thread(
                    target=self._work, name="clawmark-history", daemon=True
                )
                self._thread.start()
            self._state.notify_all()

    def close(self) -> None:
        """Stop; a recording that has begun is finished."""
        if self.pid != os.getpid():
            return
        with self._state:
            self._is_closing = True
            self._state.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def wait_for_recording(self, timeout: float) -> bool:
        """Wait until something was recorded; False after `timeout` seconds."""
        with self._state:
            return self._state.wait_for(lambda: self._recordings > 0, timeout)

    def _work(self) -> None:
        while self._wait_for_quiet():
            self._record()
            with self._state:
                self._recordings += 1
                self._state.notify_all()

    def _wait_for_quiet(self) -> bool:
        """Wait until changes have stopped; False when there is nothing to record, or no time."""
        with self._state:
            while self._first and not self._is_closing:
                now = time.monotonic()
                due = min(self._last + self._quiet, self._first + self._longest)
                if due <= now:
                    self._first = 0.0
                    return True
                self._state.wait(due - now)
            self._thread = None
        return False
