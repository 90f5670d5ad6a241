"""Failures of plugins: logged once, counted, and kept in the state folder for `doctor`.

Hooks of coding agents run in short processes, so failures are kept on disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from clawmark.system import shared_json
from clawmark.system.counters import Metrics
from clawmark.system.log_records import PRIVATE, get_logger

PATIENCE = 1.0
"""Seconds to wait for another process that records a failure."""
MOST_KEPT = 50
KEPT_DAYS = 7


class Failure(NamedTuple):
    """What failed, how often and when last."""

    sentence: str
    times: int
    last: str
    """The time of the last one, in ISO format."""


class PluginFailures:
    """The failures of the plugins of one agent."""

    def __init__(self, path: str, metrics: Metrics, now: Callable[[], datetime]) -> None:
        self._path = path
        self._metrics = metrics
        self._now = now
        self._logged: set[str] = set()

    def report(self, plugin: str, sentence: str) -> None:
        """Log a failure unless it was logged before, count it, and keep it."""
        self._metrics.count("plugins.failures")
        self._metrics.count(f"plugins.failures.{plugin}")
        if sentence not in self._logged:
            self._logged.add(sentence)
            get_logger("clawmark.plugins").warning(sentence, extra=PRIVATE)
        try:
            with shared_json.locked(self._path, PATIENCE) as is_held:
                if is_held:
                    self._save(sentence)
        except OSError:
            return  # the state folder cannot be written to; the log has it

    def recent(self) -> tuple[Failure, ...]:
        """Return the failures of the last days in any process, the latest first."""
        since = self._now().timestamp() - KEPT_DAYS * 86_400
        found = [failure for failure in self._load() if _seconds(failure.last) >= since]
        return tuple(sorted(found, key=lambda failure: failure.last, reverse=True))

    def _save(self, sentence: str) -> None:
        kept = {failure.sentence: failure for failure in self.recent()[:MOST_KEPT]}
        before = kept.get(sentence)
        kept[sentence] = Failure(
            sentence, before.times + 1 if before else 1, self._now().isoformat(timespec="seconds")
        )
        shared_json.save(self._path, {one.sentence: [one.times, one.last] for one in kept.values()})

    def _load(self) -> list[Failure]:
        """Return what the file holds; a damaged file holds nothing."""
        try:
            values = shared_json.load(self._path) or {}
        except (OSError, ValueError):
            return []
        return [
            Failure(sentence, value[0], value[1])
            for sentence, value in values.items()
            if isinstance(value, list) and [type(part) for part in value] == [int, str]
        ]


def failures_path(state_dir: str, agent_id: str) -> str:
    """Return the file of an agent's plugin failures."""
    return os.path.join(state_dir, "plugins", f"{agent_id}.json")


def _seconds(time: str) -> float:
    try:
        return datetime.fromisoformat(time).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0
