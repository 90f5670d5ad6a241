"""Estimates how long a sync will still take."""

from __future__ import annotations

import time
from collections.abc import Callable

from clawmark.model.sync_report import Progress

SURE_AFTER_SECONDS = 0.3
"""Before this, the rate says more about the start than about the work."""


def with_time_left(
    show: Callable[[Progress], None], clock: Callable[[], float] = time.monotonic
) -> Callable[[Progress], None]:
    """Fill in `seconds_left` from the rate so far; measuring restarts with each stage and each
    space."""
    stage, began, first, last = "", 0.0, 0, 0

    def shown(progress: Progress) -> None:
        nonlocal stage, began, first, last
        now = clock()
        if progress.stage != stage or progress.done < last:
            stage, began, first = progress.stage, now, progress.done
        last = progress.done
        done, took = progress.done - first, now - began
        left = max(0, progress.total - progress.done)
        is_sure = done > 0 and took > SURE_AFTER_SECONDS
        show(
            progress._replace(
                seconds_left=left * took / done if is_sure else 0.0 if left == 0 else None
            )
        )

    return shown
