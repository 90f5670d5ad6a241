"""A sync's moments in; one line on the terminal out, redrawn a few times a second. Nothing where nobody watches."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from clawmark.cli.layout import duration
from clawmark.cli.output import columns, is_terminal, one_line, paint

if TYPE_CHECKING:
    from clawmark.reports import Progress

REDRAW_SECONDS = 0.1
BAR = 24


class ProgressBar:
    """A bar on standard error while a sync runs; it takes itself away at the end."""

    def __init__(self, *, enabled: bool = True) -> None:
        self.is_shown = enabled and is_terminal(sys.stderr)
        self._stage = ""
        self._began = 0.0
        self._first = self._last = 0
        self._drawn = 0.0

    def update(self, progress: Progress) -> None:
        """Draw a moment, unless the last one was drawn just now."""
        now = time.monotonic()
        if progress.stage != self._stage or progress.done < self._last:  # a new stage, or the next tier of vectors
            self._stage, self._began, self._first = progress.stage, now, progress.done
            self._last = progress.done
        elif now - self._drawn < REDRAW_SECONDS and progress.done < progress.total:
            return
        self._drawn, self._last = now, progress.done
        self._draw(progress_line(progress, now - self._began, progress.done - self._first, columns(sys.stderr)))

    def _draw(self, line: str) -> None:
        try:
            sys.stderr.write(f"\r\x1b[2K{line}")
            sys.stderr.flush()
        except (OSError, ValueError):
            self.is_shown = False

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.is_shown and self._stage:
            self._draw("")


def progress_line(progress: Progress, seconds: float, done_since: int, width: int) -> str:
    """`reading  ███████░░░  42/120  memory/2026-11-15.md`, and for vectors the rate and the time left."""
    total = max(progress.total, 1)
    filled = min(BAR, BAR * progress.done // total)
    bar = paint("█" * filled, "green", sys.stderr) + paint("░" * (BAR - filled), "dim", sys.stderr)
    name = "reading" if progress.stage == "text" else "vectors"
    text = f"{progress.done:,}/{progress.total:,}"
    if progress.stage == "vectors" and done_since > 0 and progress.done < progress.total and seconds > 0.3:
        rate = done_since / seconds
        text += f" · {rate:,.0f}/s · {duration(max(0.0, (progress.total - progress.done) / rate))} left"
    room = width - len(name) - BAR - len(text) - 7
    label = one_line(progress.label)
    label = label if len(label) <= room else "…" + label[1 - room :] if room > 8 else ""
    return f"{name}  {bar}  {text}  {paint(label, 'dim', sys.stderr)}".rstrip()
