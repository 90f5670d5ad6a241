"""Counters keep every count, from any thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from clawmark.system.counters import Metrics


def test_counts_from_many_threads_are_all_there() -> None:
    metrics = Metrics()
    with ThreadPoolExecutor(8) as pool:
        for _ in range(4000):
            pool.submit(metrics.count, "search.queries")
    assert metrics.snapshot() == {"search.queries": 4000}


def test_the_last_value_is_kept_and_a_snapshot_does_not_change() -> None:
    metrics = Metrics()
    metrics.set("sync.seconds", 1.5)
    before = metrics.snapshot()
    metrics.set("sync.seconds", 2.5)
    metrics.count("denied", 2)
    assert before == {"sync.seconds": 1.5}
    assert metrics.snapshot() == {"denied": 2, "sync.seconds": 2.5}
