"""An index of its own for every test, on the default engine, with a clock that only moves when told to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clawmark.index.store import Index


class Clock:
    """Nanoseconds that stand still."""

    def __init__(self) -> None:
        self.now = 1_000_000_000_000_000_000

    def __call__(self) -> int:
        return self.now

    def pass_minutes(self, minutes: int) -> None:
        self.now += minutes * 60 * 1_000_000_000


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def index(tmp_path: Path, clock: Clock) -> Iterator[Index]:
    opened = Index(str(tmp_path / "index.sqlite"), cache_entries=10, clock=clock)
    yield opened
    opened.close()
