"""Counters of one `Memory`: what happened how often, and the last value of what is measured.

Names and numbers come in from any thread; one consistent snapshot goes out. Status, inspector and
metrics pages all render that snapshot; nothing is kept beyond the process."""

from __future__ import annotations

from _thread import allocate_lock  # a lock without `threading`, which costs a cold search 1 ms


class Metrics:
    """Thread-safe counters and last values under dotted names such as `search.queries`."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._values: dict[str, float] = {}

    def count(self, name: str, n: float = 1) -> None:
        """Add to a counter; it starts at 0."""
        with self._lock:
            self._values[name] = self._values.get(name, 0) + n

    def set(self, name: str, value: float) -> None:
        """Remember the last value of something measured."""
        with self._lock:
            self._values[name] = value

    def snapshot(self) -> dict[str, float]:
        """Every name with its number, in the order of the names."""
        with self._lock:
            return dict(sorted(self._values.items()))
