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

    def update(self, progress: Progress) -> None:
        """Draw the progress, at most every `REDRAW_SECONDS`."""
        now = time.monotonic()
        if (
            progress.stage == self._stage
            and now - self._drawn < REDRAW_SECONDS
            and progress.done < progress.total
        ):
            return
        self._stage, self._drawn = progress.stage, now
        self._draw(progress_line(progress, columns(sys.stderr)))

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


def progress_line(progress: Progress, width: int) -> str:
    """Format as `memory  ███████░░░  42/120 · 8 s left  memory/2026-11-15.md`."""
    total = max(progress.total, 1)
    filled = min(BAR, BAR * progress.done // total)
    bar = paint("█" * filled, "green", sys.stderr) + paint("░" * (BAR - filled), "dim", sys.stderr)
    name = stage_name(progress)
    text = f"{progress.done:,}/{progress.total:,}"
    if progress.seconds_left is not None and progress.done < progress.total:
        text += f" · {duration(progress.seconds_left)} left"
    room = width - len(name) - BAR - len(text) - 7
    label = one_line(progress.label)
    label = label if len(label) <= room else "…" + label[1 - room :] if room > 8 else ""
    return f"{name}  {bar}  {text}  {paint(label, 'dim', sys.stderr)}".rstrip()
