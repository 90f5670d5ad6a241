"""Limit how many requests a token or an address may make, with a token bucket for each.

Every process counts for itself: with several replicas the limit of the whole is the sum of theirs.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

KEPT = 10_000
"""Clients that are remembered; the one that was seen longest ago is forgotten first."""
BURST_SECONDS = 10
"""A client that was quiet may use the allowance of this many seconds at once."""


class RateLimit:
    """At most some requests in a minute for each key; 0 switches the limit off."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_minute / 60
        self._burst = max(1.0, self._rate * BURST_SECONDS)
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        """What is left for a key, and when that was so."""

    def take(self, key: Hashable, cost: float = 1.0) -> int:
        """Count a request; return 0, or after how many seconds it would be allowed."""
        if not self._rate:
            return 0
        with self._lock:
            now = self._clock()
            left, at = self._buckets.pop(key, (self._burst, now))
            left = min(self._burst, left + (now - at) * self._rate)
            is_allowed = left >= min(cost, self._burst)
            self._buckets[key] = (left - cost if is_allowed else left, now)
            while len(self._buckets) > KEPT:
                self._buckets.popitem(last=False)
        if is_allowed:
            return 0
        return math.ceil((min(cost, self._burst) - left) / self._rate)
