"""Counters and last values of one `Memory`, kept for the life of the process."""

from __future__ import annotations

from _thread import allocate_lock  # a lock without `threading`, which costs a cold search 1 ms


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
