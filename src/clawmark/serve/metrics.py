"""Counters and gauges in the text format of Prometheus.

All series are known from the start, so that they are numbers in one block of memory. Worker
processes of one server share the block: each writes its own row, and any of them can report the sum
of all."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple

STATUSES = (
    *(200, 201, 202, 204, 303, 400, 401, 403, 404, 405, 406, 408, 409, 413, 415, 422, 429, 431),
    *(500, 503),
)
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
OTHER = "other"
_NUMBER = 8


class Metric(NamedTuple):
    """A metric with the names of its labels and all their values."""

    name: str
    kind: str
    help: str
    label: str = ""
    values: tuple[str, ...] = ("",)


_METRICS = (
    Metric("clawmark_searches_total", "counter", "Searches of the spaces."),
    Metric("clawmark_entries_appended_total", "counter", "Entries stored in logs of spaces."),
    Metric("clawmark_entries_repeated_total", "counter", "Appends that were stored before."),
    Metric("clawmark_documents_published_total", "counter", "Documents published."),
    Metric("clawmark_documents_withdrawn_total", "counter", "Documents withdrawn."),
    Metric("clawmark_embedding_runs_total", "counter", "Spaces looked at for missing vectors."),
    Metric("clawmark_errors_total", "counter", "Requests that failed unexpectedly."),
    Metric("clawmark_database_errors_total", "counter", "Requests the database did not answer."),
    Metric(
        name="clawmark_rate_limited_total",
        kind="counter",
        help="Requests refused by a rate limit.",
        label="by",
        values=("token", "address", "load"),
    ),
    Metric("clawmark_requests_in_flight", "gauge", "Requests being answered."),
    Metric("clawmark_connections_open", "gauge", "Connections of clients."),
    Metric("clawmark_pool_connections", "gauge", "Connections to the database."),
    Metric("clawmark_pool_connections_idle", "gauge", "Connections to the database not in use."),
    Metric("clawmark_pool_requests_waiting", "gauge", "Requests waiting for a connection."),
    Metric("clawmark_workers", "gauge", "Running worker processes."),
)


class Metrics:
    """The metrics of one server; `worker` is the row that this process writes."""

    def __init__(self, routes: Iterable[str], workers: int = 1) -> None:
        self.routes = (*routes, OTHER)
        statuses = tuple(map(str, (*STATUSES, OTHER)))
        keys: list[tuple[str, ...]] = [
            (metric.name, value) for metric in _METRICS for value in metric.values
        ]
        for route in self.routes:
            keys += [("requests", route, status) for status in statuses]
            keys += [("bucket", route, str(bound)) for bound in (*BUCKETS, "+Inf")]
            keys.append(("seconds", route))
        self._place = {key: number for number, key in enumerate(keys)}
        self._rows = workers
        self._width = len(keys)
        # Anonymous memory that forked processes share.
        self._memory = memoryview(mmap.mmap(-1, workers * self._width * _NUMBER)).cast("d")
        self._lock = threading.Lock()
        self.worker = 0

    def add(self, name: str, amount: float = 1.0, value: str = "") -> None:
        """Increase a counter."""
        self._add((name, value), amount)

    def set(self, name: str, value: float) -> None:
        """Set a gauge of this process."""
        with self._lock:
            self._memory[self.worker * self._width + self._place[name, ""]] = value

    def observe(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        route = route if route in self.routes else OTHER
        self._add(("requests", route, str(status if status in STATUSES else OTHER)), 1)
        for bound in BUCKETS:
            if seconds <= bound:
                self._add(("bucket", route, str(bound)), 1)
        self._add(("bucket", route, "+Inf"), 1)
        self._add(("seconds", route), seconds)

    def total(self, *key: str) -> float:
        """Return the sum of a series over all processes."""
        place = self._place[key if len(key) > 1 else (key[0], "")]
        return sum(self._memory[row * self._width + place] for row in range(self._rows))

    def clear_gauges(self, worker: int) -> None:
        """Forget the gauges of a process that has ended."""
        for metric in _METRICS:
            if metric.kind == "gauge":
                for value in metric.values:
                    place = self._place[metric.name, value]
                    self._memory[worker * self._width + place] = 0.0

    def text(self) -> str:
        """Return all metrics; a route that was never asked for has no lines."""
        lines = list[str]()
        for metric in _METRICS:
            lines += _head(metric.name, metric.kind, metric.help)
            for value in metric.values:
                labels = _labels((metric.label, value)) if metric.label else ""
                lines.append(f"{metric.name}{labels} {_shown(self.total(metric.name, value))}")
        lines += self._request_lines()
        return "\n".join(lines) + "\n"

    def _request_lines(self) -> list[str]:
        lines = _head("clawmark_requests_total", "counter", "Requests by route and status.")
        used = [route for route in self.routes if self.total("bucket", route, "+Inf")]
        for route in used:
            for status in map(str, (*STATUSES, OTHER)):
                if count := self.total("requests", route, status):
                    labels = _labels(("route", route), ("status", status))
                    lines.append(f"clawmark_requests_total{labels} {_shown(count)}")
        name = "clawmark_request_duration_seconds"
        lines += _head(name, "histogram", "Time to answer a request, by route.")
        for route in used:
            for bound in (*map(str, BUCKETS), "+Inf"):
                labels = _labels(("route", route), ("le", bound))
                lines.append(f"{name}_bucket{labels} {_shown(self.total('bucket', route, bound))}")
            label = _labels(("route", route))
            lines.append(f"{name}_sum{label} {self.total('seconds', route):.6f}")
            lines.append(f"{name}_count{label} {_shown(self.total('bucket', route, '+Inf'))}")
        return lines

    def _add(self, key: tuple[str, ...], amount: float) -> None:
        place = self.worker * self._width + self._place[key]
        with self._lock:
            self._memory[place] += amount


def _head(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


def _labels(*pairs: Sequence[str]) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in pairs) + "}"


def _shown(value: float) -> str:
    return f"{value:.0f}"
