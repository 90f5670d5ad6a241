"""Growing waits between attempts."""

from typing import NamedTuple

JITTER = 0.2
"""The largest part by which a wait is lengthened, so that callers do not come back together."""


class Backoff(NamedTuple):
    """Waits that start at `first` seconds and double up to `longest`."""

    first: float
    longest: float

    def wait(self, attempt: int, *, at_least: float = 0.0, jitter: float = 0.0) -> float:
        """Return the seconds to wait after the given attempt, counted from 1.

        `at_least` is what a server asked for; it may exceed `longest`. `jitter` is a random number
        from 0 to 1.
        """
        own = min(self.longest, self.first * 2.0 ** min(attempt - 1, 60))
        return max(own * (1 + JITTER * jitter), at_least)
