"""The background worker: requests are merged, syncs run one at a time, and every caller is
answered."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from clawmark.engine.sync.scan import SyncRequest
from clawmark.engine.sync.worker import REASONS, Job, SyncWorker, merge_jobs, merge_requests
from clawmark.model.errors import ClawmarkError, IndexBusy
from clawmark.model.reports import Progress, SyncReport, WatchEvent
from clawmark.system.backoff import Backoff

LONG = 60.0
"""A test that waits this long has failed."""


def report(number: int = 0, **changes: int) -> SyncReport:
    plain = SyncReport(
        added=0,
        updated=0,
        touched=0,
        deleted=0,
        unchanged=0,
        chunks=number,
        embedded=0,
        reused=0,
        skipped=(),
        failures=(),
        scan_failures=(),
        due_files=0,
        due_vectors=0,
        generation=1,
        degraded=None,
        seconds=0.0,
    )
    return plain._replace(**changes)  # type: ignore[arg-type]


class Worker:
    """Replaces the sync: records its requests and takes as long as the test wants."""

    def __init__(self) -> None:
        self.requests: list[SyncRequest] = []
        self.begun = threading.Semaphore(0)
        self.may_end = threading.Semaphore(0)
        self.outcome: Callable[[], SyncReport] = report

    def __call__(self, request: SyncRequest) -> SyncReport:
        self.requests.append(request)
        self.begun.release()
        assert self.may_end.acquire(timeout=LONG)
        return self.outcome()

    def let(self, number: int = 1) -> None:
        for _ in range(number):
            self.may_end.release()

    def wait_until_begun(self) -> None:
        assert self.begun.acquire(timeout=LONG)


@pytest.fixture
def worker() -> Worker:
    return Worker()


@pytest.fixture
def keeper(worker: Worker) -> Iterator[SyncWorker]:
    kept = SyncWorker(worker, debounce=0.01)
    yield kept
    worker.let(100)
    kept.close()


def idle(keeper: SyncWorker, runs: int) -> bool:
    return keeper.wait_for(lambda: keeper.is_idle and keeper.runs == runs, LONG)


def test_no_thread_runs_before_the_first_request(worker: Worker) -> None:
    before = threading.active_count()
    keeper = SyncWorker(worker)
    assert threading.active_count() == before and keeper.is_idle
    keeper.close()


def test_a_sync_indexes_files_until_it_reaches_its_vectors(
    keeper: SyncWorker, worker: Worker
) -> None:
    assert not keeper.is_at_work and not keeper.is_at_files
    keeper.ask(SyncRequest())
    worker.wait_until_begun()
    assert keeper.is_at_work and keeper.is_at_files
    show = worker.requests[0].progress
    assert show is not None
    show(Progress(stage="vectors", done=1, total=2, label="an embedder"))
    assert keeper.is_at_work and not keeper.is_at_files
    worker.let()
    assert idle(keeper, 1)
    assert not keeper.is_at_work and not keeper.is_at_files


def test_a_sync_that_waits_for_the_debounce_is_not_running(worker: Worker) -> None:
    keeper = SyncWorker(worker, debounce=LONG)
    keeper.ask(SyncRequest(), settle=True)
    assert not keeper.is_idle and not keeper.is_at_work
    keeper.close()


def test_requests_during_a_sync_are_merged(keeper: SyncWorker, worker: Worker) -> None:
    keeper.ask(SyncRequest(reason="watch", deltas=True))
    worker.wait_until_begun()
    keeper.ask(SyncRequest(reason="watch", deltas=True, instant_only=True))
    keeper.ask(SyncRequest(reason="search"))
    keeper.ask(SyncRequest(reason="manual", force=True))
    keeper.ask(SyncRequest(reason="interval"))
    worker.let(2)
    assert idle(keeper, 2)
    first, second = worker.requests
    assert (first.force, first.deltas) == (False, True)
    assert (second.force, second.deltas, second.instant_only, second.reason) == (
        True,
        False,
        False,
        "manual",
    )


def test_a_caller_gets_the_report_of_a_sync_that_started_after_its_request(
    keeper: SyncWorker, worker: Worker
) -> None:
    numbers = iter(range(1, 10))
    worker.outcome = lambda: report(next(numbers))
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(keeper.sync, SyncRequest())
        worker.wait_until_begun()
        others = [pool.submit(keeper.sync, SyncRequest()) for _ in range(3)]
        assert keeper.wait_for(
            lambda: keeper._next is not None and len(keeper._next.waiting) == 3, LONG
        )
        worker.let(2)
        assert first.result(LONG).chunks == 1
        assert [other.result(LONG).chunks for other in others] == [2, 2, 2]


def test_progress_reaches_the_callers_of_the_running_and_the_next_sync(
    keeper: SyncWorker, worker: Worker
) -> None:
    seen: dict[str, list[int]] = {"one": [], "other": []}
    keeper.ask(SyncRequest(progress=lambda moment: seen["one"].append(moment.done)))
    worker.wait_until_begun()
    keeper.ask(SyncRequest(progress=lambda moment: seen["other"].append(moment.done)))
    show = worker.requests[0].progress
    assert show is not None
    show(Progress(stage="text", done=7, total=9, label="memory/a.md"))
    worker.let(2)
    assert idle(keeper, 2)
    show = worker.requests[1].progress
    assert show is not None
    assert seen == {"one": [7], "other": [7]}


def test_an_error_is_kept_for_status_and_the_next_request_is_served(
    keeper: SyncWorker, worker: Worker
) -> None:
    def fail() -> SyncReport:
        raise ClawmarkError("The disk is full.")

    worker.outcome = fail
    worker.let(2)
    keeper.ask(SyncRequest(reason="watch"))
    assert idle(keeper, 1)
    assert isinstance(keeper.last_error, ClawmarkError)
    with pytest.raises(ClawmarkError, match="The disk is full"):
        keeper.sync(SyncRequest())
    worker.outcome = report
    worker.let()
    keeper.sync(SyncRequest())
    assert keeper.last_error is None


def test_an_unexpected_error_does_not_end_the_thread(keeper: SyncWorker, worker: Worker) -> None:
    worker.outcome = lambda: report(1 // len(worker.requests[2:]))
    worker.let(3)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            keeper.sync(SyncRequest())
    assert keeper.sync(SyncRequest()).chunks == 1


def test_a_busy_index_is_retried(
    keeper: SyncWorker, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clawmark.engine.sync.worker.BUSY", Backoff(0.001, 60.0))

    def busy_at_first() -> SyncReport:
        if len(worker.requests) < 3:
            raise IndexBusy("Another process is writing.")
        return report()

    worker.outcome = busy_at_first
    worker.let(3)
    keeper.ask(SyncRequest(reason="watch"))
    assert idle(keeper, 3)
    assert keeper.last_error is None


def test_after_a_change_files_are_checked_once_more_after_a_clock_tick(
    keeper: SyncWorker, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clawmark.engine.sync.worker.SETTLE_SECONDS", 0.001)
    worker.outcome = lambda: report(updated=1)
    worker.let(2)
    keeper.ask(SyncRequest(reason="watch"))
    assert idle(keeper, 2)
    assert [request.reason for request in worker.requests] == ["watch", "settle"]


def test_a_transcript_that_grew_too_little_is_indexed_once_it_is_quiet(
    keeper: SyncWorker, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clawmark.engine.sync.worker.QUIET_SECONDS", 0.001)
    worker.outcome = lambda: report(due_files=int(len(worker.requests) == 1))
    worker.let(2)
    keeper.ask(SyncRequest(reason="watch", deltas=True))
    assert idle(keeper, 2)
    assert [(request.reason, request.deltas) for request in worker.requests] == [
        ("watch", True),
        ("session-delta", False),
    ]


@pytest.mark.parametrize("left", ["due_vectors", "due_files", ""])
def test_an_unfinished_sync_of_the_watcher_is_retried(
    keeper: SyncWorker, worker: Worker, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    monkeypatch.setattr("clawmark.engine.sync.worker.RETRY", Backoff(0.001, 3600.0))

    def unfinished_at_first() -> SyncReport:
        if len(worker.requests) < 3 and not left:
            raise ClawmarkError("The disk is full.")
        return report(**{left: 1}) if len(worker.requests) < 3 else report()

    worker.outcome = unfinished_at_first
    worker.let(3)
    keeper.ask(SyncRequest(reason="watch"))
    assert idle(keeper, 3)
    assert [request.reason for request in worker.requests] == ["watch"] * 3
    assert keeper.last_error is None and keeper._retry_at is None


def test_an_unfinished_sync_of_a_search_is_not_retried(keeper: SyncWorker, worker: Worker) -> None:
    worker.outcome = lambda: report(due_vectors=1)
    worker.let()
    keeper.ask(SyncRequest(reason="search"))
    assert idle(keeper, 1)
    assert keeper._retry_at is None


def test_the_interval_requests_a_sync(worker: Worker) -> None:
    keeper = SyncWorker(worker, interval=0.001)
    worker.let(3)
    assert keeper.wait_for(lambda: keeper.runs >= 3, LONG)
    assert {request.reason for request in worker.requests} == {"interval"}
    worker.let(100)
    keeper.close()


def test_closing_stops_the_running_sync_between_batches_and_fails_waiting_requests(
    worker: Worker,
) -> None:
    keeper = SyncWorker(worker)
    with ThreadPoolExecutor(3) as pool:
        running = pool.submit(keeper.sync, SyncRequest())
        worker.wait_until_begun()
        waiting = pool.submit(keeper.sync, SyncRequest())
        assert keeper.wait_for(lambda: keeper._next is not None, LONG)
        asked = worker.requests[0].cancelled
        assert asked is not None and not asked()
        closing = pool.submit(keeper.close)
        assert keeper.wait_for(asked, LONG)
        worker.let()
        closing.result(LONG)
        assert running.result(LONG) == report()
        with pytest.raises(ClawmarkError, match="was closed"):
            waiting.result(LONG)
    assert len(worker.requests) == 1
    with pytest.raises(ClawmarkError, match="was closed"):
        keeper.sync(SyncRequest())


def test_closing_aborts_a_slow_sync(worker: Worker) -> None:
    keeper = SyncWorker(worker)
    keeper.ask(SyncRequest())
    worker.wait_until_begun()
    keeper.close(abort=worker.let, patience=0.001)
    assert keeper.runs == 1


def test_a_listener_can_request_a_sync(worker: Worker) -> None:
    found: list[SyncReport] = []
    told = threading.Event()

    def listener(event: WatchEvent) -> None:
        if event.kind == "done" and not found:
            found.append(asked.sync(SyncRequest(reason="manual")))
            told.set()

    asked = SyncWorker(worker, notify=listener)
    worker.let(2)
    asked.ask(SyncRequest(reason="watch"))
    assert told.wait(LONG) and found == [report()]
    asked.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_can_close_the_worker_of_its_parent(
    keeper: SyncWorker, worker: Worker
) -> None:
    keeper.ask(SyncRequest())
    worker.wait_until_begun()
    child = os.fork()
    if child == 0:
        keeper.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


# --- decisions ------------------------------------------------------------------------------------


def job(at: float, first: float, *, settles: bool, reason: str = "watch") -> Job:
    return Job(request=SyncRequest(reason=reason), at=at, first=first, settles=settles)


def test_every_change_restarts_the_debounce_up_to_a_limit() -> None:
    pending = job(1.5, 0.0, settles=True)
    for tenth in range(1, 100):
        now = tenth / 10
        pending = merge_jobs(pending, job(now + 1.5, now, settles=True), 7.5)
        assert pending.at == pytest.approx(min(now + 1.5, 7.5))


def test_a_request_that_does_not_wait_ends_the_debounce() -> None:
    pending = merge_jobs(
        job(1.5, 0.0, settles=True), job(0.2, 0.2, settles=False, reason="search"), 7.5
    )
    assert (pending.at, pending.settles) == (0.2, False)
    later = merge_jobs(pending, job(2.0, 0.5, settles=True), 7.5)
    assert (later.at, later.settles) == (0.2, False), (
        "a change does not put off what was asked for at once"
    )


@pytest.mark.parametrize("one", REASONS)
@pytest.mark.parametrize("other", REASONS)
def test_the_stronger_reason_is_reported_whichever_came_first(one: str, other: str) -> None:
    both = merge_requests(SyncRequest(reason=one), SyncRequest(reason=other))
    assert both.reason == merge_requests(SyncRequest(reason=other), SyncRequest(reason=one)).reason
    assert REASONS.index(both.reason) == max(REASONS.index(one), REASONS.index(other))
