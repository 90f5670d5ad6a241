"""What every test stands on: hypothesis without a stopwatch, none of the caller's own settings or
signals, a clock that stands still until told to move, and an index of its own."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from clawmark.store.sqlite.store import SqliteStore

pytest_plugins = ["postgres_fixtures", "team_fixtures", "web_fixtures"]

# A loaded machine is no reason for a property to be false, so examples have no deadline.
settings.register_profile("clawmark", deadline=None)
settings.load_profile("clawmark")

# Under `nohup`, or in the background of a script, these are ignored, and so they would be by every
# process a test starts.
for _number, _usual in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL)):
    if hasattr(signal, _number) and signal.getsignal(getattr(signal, _number)) is signal.SIG_IGN:
        signal.signal(getattr(signal, _number), _usual)


@pytest.fixture(autouse=True)
def _no_outside_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's CLAWMARK_* and OPENCLAW_* variables must not reach a test; CLAWMARK_SHARED only
    names a folder.
    """
    for name in list(os.environ):
        if name.startswith(("CLAWMARK_", "OPENCLAW_")) and name != "CLAWMARK_SHARED":
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _no_abandoned_calls() -> Iterator[None]:
    """A test that makes a plugin or backend hang must let it finish: other tests count threads."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith(("clawmark-plugin", "clawmark-lancedb")):
            thread.join(30.0)
            assert not thread.is_alive(), f"the test left the thread {thread.name} running"


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
def index(tmp_path: Path, clock: Clock) -> Iterator[SqliteStore]:
    opened = SqliteStore(str(tmp_path / "index.sqlite"), cache_entries=10, clock=clock)
    yield opened
    opened.close()
