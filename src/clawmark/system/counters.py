"""Counters and last values of one `Memory`, kept for the life of the process or in a file."""

from __future__ import annotations

import time
from _thread import allocate_lock  # a lock without `threading`, which costs a cold search 1 ms
from typing import Literal, TypeAlias

from clawmark.system import log_file

Event: TypeAlias = Literal["denied", "readErrors", "fallbacks", "historyFailures", "journalErrors"]
"""Paths that were refused, files that could not be read, answers given by a substitute (another
embedder, keywords alone, or another backend), versions that could not be recorded, and writes that
the journal could not record."""


class Metrics:
    """Thread-safe counters and last values under dotted names such as `search.queries`."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._values: dict[str, float] = {}

    def count(self, name: str, n: float = 1) -> None:
        """Add to a counter, which starts at 0."""
        with self._lock:
            self._values[name] = self._values.get(name, 0) + n

    def set(self, name: str, value: float) -> None:
        """Set the last value of something measured."""
        with self._lock:
            self._values[name] = value

    def snapshot(self) -> dict[str, float]:
        """Return all values at one moment, sorted by name."""
        with self._lock:
            return dict(sorted(self._values.items()))


class SharedCounts:
    """Counts events for all processes of a memory; the file is not touched before the first one."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = allocate_lock()
        self._waiting: dict[str, int] = {}

    def add(self, event: Event, detail: str = "") -> None:
        """Count and log an event; if the file cannot be written now, with the next one. Never
        raises. `detail` says more in the log."""
        # Imported late: most processes count nothing.
        from clawmark.system.shared_counts import add_counts

        log_file.write("warning", f"{event}: {detail}" if detail else event)
        with self._lock:
            self._waiting[event] = self._waiting.get(event, 0) + 1
            if add_counts(self.path, self._waiting, time.time_ns() // 1_000_000):
                self._waiting = {}
