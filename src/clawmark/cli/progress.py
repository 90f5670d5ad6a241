"""Show the progress of a sync on one line of the terminal; nothing without a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from clawmark.cli.layout import duration
from clawmark.cli.output import columns, is_quiet, is_terminal, one_line, paint
from clawmark.model.sync_report import Progress

REDRAW_SECONDS = 0.1
BAR = 24


class ProgressBar:
    """A progress bar on standard error, removed at the end."""

    def __init__(self, *, enabled: bool = True) -> None:
        self.is_shown = enabled and is_terminal(sys.stderr) and not is_quiet()
        self._stage = ""
        self._drawn = 0.0
        self._start = (0.0, 0)
        """When this stage began to be shown, and how much was done by then."""

    def update(self, progress: Progress) -> None:
        """Draw the progress, at most every `REDRAW_SECONDS`."""
        now = time.monotonic()
        if (
            progress.stage == self._stage
            and now - self._drawn < REDRAW_SECONDS
            and progress.done < progress.total
        ):
            return
        if progress.stage != self._stage or progress.done < self._start[1]:
            self._start = (now, progress.done)
        self._stage, self._drawn = progress.stage, now
        rate = per_second(progress.done - self._start[1], now - self._start[0])
        self._draw(progress_line(progress, columns(sys.stderr), rate))

    def count(self, name: str, done: int, label: str) -> None:
        """Draw how much is done of work whose length is not known."""
        now = time.monotonic()
        if not self._stage:
            self._stage, self._start = name, (now, done - 1)
        if now - self._drawn >= REDRAW_SECONDS:
            self._drawn = now
            rate = per_second(done - self._start[1], now - self._start[0])
            self._draw(count_line(name, done, label, columns(sys.stderr), rate))

    def _draw(self, line: str) -> None:
        try:
            sys.stderr.write(f"\r\x1b[2K{line}")
            sys.stderr.flush()
        except (OSError, ValueError):
            self.is_shown = False

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.is_shown and self._stage:
            self._draw("")


def stage_name(progress: Progress) -> str:
    """Return the stage in one word."""
    if progress.stage == "vectors":
        return "vectors"
    return "transcripts" if progress.source == "sessions" else "memory"


def per_second(done: int, seconds: float) -> float:
    """Return the rate of some work; 0 while too little time has passed."""
    return done / seconds if done > 0 and seconds > 2 * REDRAW_SECONDS else 0.0


def rate_text(rate: float) -> str:
    """Format as ` · 120/s` or ` · 2.5/s`; empty for 0."""
    return f" · {rate:,.0f}/s" if rate >= 10 else f" · {rate:.1f}/s" if rate > 0 else ""


def count_line(name: str, done: int, label: str, width: int, rate: float = 0.0) -> str:
    """Format as `import  1,200 · 340/s  memory/imports/chatgpt/2026-11-15-tea.md`."""
    text = f"{name}  {done:,}{rate_text(rate)}"
    return f"{text}  {paint(_label(label, width - len(text) - 3), 'dim', sys.stderr)}".rstrip()


def progress_line(progress: Progress, width: int, rate: float = 0.0) -> str:
    """Format as `memory  ███████░░░  42/120 · 12/s · 8 s left  memory/2026-11-15.md`."""
    total = max(progress.total, 1)
    filled = min(BAR, BAR * progress.done // total)
    bar = paint("█" * filled, "green", sys.stderr) + paint("░" * (BAR - filled), "dim", sys.stderr)
    name = stage_name(progress)
    text = f"{progress.done:,}/{progress.total:,}{rate_text(rate)}"
    left = progress.seconds_left
    if left is None and rate:
        left = (progress.total - progress.done) / rate
    if left is not None and progress.done < progress.total:
        text += f" · {duration(left)} left"
    label = _label(progress.label, width - len(name) - BAR - len(text) - 7)
    return f"{name}  {bar}  {text}  {paint(label, 'dim', sys.stderr)}".rstrip()


def _label(text: str, room: int) -> str:
    """Return the end of a path that fits."""
    label = one_line(text)
    return label if len(label) <= room else "…" + label[1 - room :] if room > 8 else ""
