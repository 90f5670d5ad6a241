"""Times the steps of a search and keeps what each of them did, for `explain`."""

from __future__ import annotations

import time
from typing import TypeAlias

RecordedStep: TypeAlias = tuple[int, str, str, float, int | None]
"""The fields of a `Step`, which only a search with `--explain` makes of them."""


class Trace:
    """Times the steps."""

    def __init__(self) -> None:
        self._began = self._last = time.perf_counter()
        self._before = 0.0
        self.steps: list[RecordedStep] = []

    def step(
        self,
        number: int,
        name: str,
        summary: str,
        *,
        before: float = 0.0,
        passages: int | None = None,
    ) -> None:
        """Record a step that ran since the last one, plus `before` milliseconds before all of
        them."""
        now = time.perf_counter()
        milliseconds = (now - self._last) * 1000 + before
        self.steps.append((number, name, summary, milliseconds, passages))
        self._last = now
        self._before += before

    def record(self, number: int, name: str, summary: str, milliseconds: float) -> None:
        """Record a step that ran elsewhere."""
        self.steps.append((number, name, summary, milliseconds, None))

    def milliseconds(self) -> float:
        return (time.perf_counter() - self._began) * 1000 + self._before
