"""Runs syncs in the background: one thread that handles requests, one after the other.

Requests come from the watcher, a starting session, a search that found more than it had time for, a
timer, or the user. Requests that arrive while a sync runs are merged into one that does what all of
them ask for; it starts after all of them were made, so its report answers each. A request carries
no state about what is due: the sync compares disk and index."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple

from clawmark.engine.sync.plan import GRAIN_NS
from clawmark.engine.sync.scan import SyncRequest
from clawmark.model.errors import ClawmarkError, IndexBusy
from clawmark.model.reports import WatchEvent
from clawmark.model.sync_report import Progress, SyncReport
from clawmark.system.backoff import Backoff
from clawmark.system.log_records import get_logger

REASONS = (
    "settle",
    "watch",
    "interval",
    "session-start",
    "search",
    "session-delta",
    "identity",
    "post-compaction",
    "manual",
)
"""Why a sync runs; of two merged requests, the later reason in this list is reported.

`settle` is the check after the clock's resolution has passed, when a file can no longer have
changed unnoticed."""

LONGEST_DEBOUNCE = 5
"""Changes that never stop delay a sync by at most this many times the debounce."""
BUSY = Backoff(first=0.5, longest=60.0)
"""How long to wait before retrying a busy index."""
SETTLE_SECONDS = GRAIN_NS / 1e9 + 0.1
QUIET_SECONDS = 60.0
"""A transcript that has not changed for this long is indexed to its end, however little it grew."""
WATCHED = ("settle", "watch", "session-delta")
"""Syncs that no caller waits for, so what they leave unfinished has to be retried here."""
RETRY = Backoff(first=60.0, longest=3600.0)
"""How long after such a sync it is retried: the disk was full, or a service unavailable.
"""
_LOG = get_logger("clawmark.engine.sync")


class Job(NamedTuple):
    """The next sync, when it may start, and who waits for its report or shows its progress."""

    request: SyncRequest
    at: float
    first: float
    """When the first of the merged requests was made."""
    settles: bool
    """Whether it waits for changes to stop."""
    waiting: tuple[Future[SyncReport], ...] = ()
    watching: tuple[Callable[[Progress], None], ...] = ()


class SyncWorker:
    """Runs syncs in a background thread, from the first request until `close`."""

    def __init__(
        self,
        run: Callable[[SyncRequest], SyncReport],
        *,
        debounce: float = 1.5,
        interval: float = 0.0,
        notify: Callable[[WatchEvent], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run = run
        self._debounce = debounce
        self._interval = interval
        self._notify = notify or _nothing
        self._clock = clock
        self._state = threading.Condition()
        self._next: Job | None = None
        self._now: Job | None = None
        self._stage = ""
        """The stage of the running sync."""
        self._busy_attempts = 0
        self._quiet_at: float | None = None
        """When transcripts that grew too little to be indexed at once are indexed."""
        self._retries = 0
        self._retry_at: float | None = None
        """When an unfinished sync of the watcher is retried."""
        self._closing = False
        self._thread: threading.Thread | None = None
        self.pid = os.getpid()
        self.runs = 0
        """How many syncs have ended, successfully or not."""
        self.last_error: Exception | None = None
        """Why the last sync failed; None if it succeeded."""
        if interval:
            with self._state:
                self._start()

    # --- asking -----------------------------------------------------------------------------------

    def ask(self, request: SyncRequest, *, settle: bool = False) -> None:
        """Request a sync that starts after this call; with `settle`, when changes have stopped for
        the debounce."""
        self._add(request, settle, ())

    def sync(self, request: SyncRequest) -> SyncReport:
        """Request a sync, wait for its report and return it; raise what the sync raised."""
        if (
            threading.current_thread() is self._thread
        ):  # Called by a listener: waiting would never end.
            return self._run(request)
        answer: Future[SyncReport] = Future()
        self._add(request, False, (answer,))
        return answer.result()

    def _add(
        self, request: SyncRequest, settle: bool, waiting: tuple[Future[SyncReport], ...]
    ) -> None:
        watching = (request.progress,) if request.progress is not None else ()
        with self._state:
            if self._closing:
                for answer in waiting:
                    answer.set_exception(_closed())
                return
            now = self._clock()
            at = now + self._debounce if settle else now
            job = Job(
                request=request._replace(progress=None),
                at=at,
                first=now,
                settles=settle,
                waiting=waiting,
                watching=watching,
            )
            before = self._next
            self._next = (
                job
                if before is None
                else merge_jobs(before, job, LONGEST_DEBOUNCE * self._debounce)
            )
            self._start()
            if before is None or self._next.at < before.at:
                # A longer debounce needs no wake-up: the thread notices when it checks.
                self._state.notify_all()

    @property
    def is_idle(self) -> bool:
        """Whether no sync is running or requested."""
        return self._now is None and self._next is None

    @property
    def is_at_work(self) -> bool:
        """Whether a sync is running or due now; one that waits for changes to stop does not
        count."""
        job = self._next
        return self._now is not None or (job is not None and job.at <= self._clock())

    @property
    def is_at_files(self) -> bool:
        """Whether a sync is running that has not reached its vectors yet."""
        return self.is_at_work and self._stage != "vectors"

    def wait_for(self, condition: Callable[[], bool], timeout: float | None) -> bool:
        """Wait for a condition, checked whenever a sync is requested, starts or ends."""
        with self._state:
            return self._state.wait_for(condition, timeout)

    def close(self, abort: Callable[[], None] | None = None, patience: float = 2.0) -> None:
        """Stop after the current batch and fail the requests that still wait.

        `abort` is called if that takes longer than `patience` seconds."""
        if self.pid != os.getpid():
            return  # A forked child has neither the thread nor a lock it can trust.
        atexit.unregister(self.close)
        with self._state:
            self._closing = True
            self._state.notify_all()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(patience)
            if thread.is_alive():
                if abort is not None:
                    abort()
                thread.join()
        with self._state:
            left, self._next = self._next, None
        for answer in left.waiting if left is not None else ():
            answer.set_exception(_closed())

    # --- the thread -------------------------------------------------------------------------------

    def _start(self) -> None:
        if self._thread is None:
            # A daemon thread, so that a program that forgets to close its memory can exit.
            self._thread = threading.Thread(target=self._work, name="clawmark-sync", daemon=True)
            self._thread.start()
            atexit.register(self.close)

    def _work(self) -> None:
        while True:
            with self._state:
                job = self._take()
                if job is None:
                    return
                self._now = job
                self._state.notify_all()
            self._run_job(job)

    def _take(self) -> Job | None:
        """Wait for the next job; None when it is time to end."""
        by_the_clock = self._clock() + self._interval if self._interval else None
        while not self._closing:
            now = self._clock()
            job = self._next
            if job is not None and job.at <= now:
                self._next = None
                return job
            if by_the_clock is not None and by_the_clock <= now:
                return Job(SyncRequest(reason="interval"), now, now, settles=False)
            if self._quiet_at is not None and self._quiet_at <= now:
                return Job(SyncRequest(reason="session-delta"), now, now, settles=False)
            if self._retry_at is not None and self._retry_at <= now:
                return Job(SyncRequest(reason="watch"), now, now, settles=False)
            asked = job.at if job is not None else None
            times = [
                at for at in (asked, by_the_clock, self._quiet_at, self._retry_at) if at is not None
            ]
            self._state.wait(min(times) - now if times else None)
        return None

    def _run_job(self, job: Job) -> None:
        reason = job.request.reason
        self._notify(WatchEvent("began", reason))
        request = job.request._replace(progress=self._show, cancelled=lambda: self._closing)
        report: SyncReport | None = None
        error: Exception | None = None
        try:
            report = self._run(request)
        except Exception as caught:  # The boundary of the thread: it must survive any error.
            error = caught
        again = self._follow_up(job, report, error)
        with self._state:
            self._now, self._stage = None, ""
            self.runs += 1
            self.last_error = error
            is_left = report is not None and report.due_files > 0 and job.request.deltas
            self._quiet_at = self._clock() + QUIET_SECONDS if is_left else None
            self._plan_retry(job.request, report)
            if again is not None and not self._closing:
                self._next = (
                    again
                    if self._next is None
                    else merge_jobs(again, self._next, LONGEST_DEBOUNCE * self._debounce)
                )
            self._state.notify_all()
        for answer in job.waiting:
            if report is not None:
                answer.set_result(report)
            else:
                answer.set_exception(error)
        self._notify(
            WatchEvent("done" if error is None else "failed", reason, report=report, error=error)
        )

    def _follow_up(
        self, job: Job, report: SyncReport | None, error: Exception | None
    ) -> Job | None:
        """Return what follows a sync: a retry for a busy index, or a check of files that changed
        just now."""
        now = self._clock()
        if isinstance(error, IndexBusy):
            self._busy_attempts += 1
            # Callers that waited get the error and may retry; other requests are retried here.
            request = job.request._replace(force=job.request.force and not job.waiting)
            return Job(request, now + BUSY.wait(self._busy_attempts), now, settles=False)
        self._busy_attempts = 0
        if error is not None:
            facts = {"reason": job.request.reason, "error": type(error).__name__}
            _LOG.warning(
                "sync failed",
                exc_info=None if isinstance(error, ClawmarkError) else error,
                extra={"facts": facts},
            )
        elif (
            report is not None
            and job.request.reason != "settle"
            and report.added + report.updated + report.touched
        ):
            return Job(
                SyncRequest(reason="settle", deltas=True), now + SETTLE_SECONDS, now, settles=True
            )
        return None

    def _plan_retry(self, request: SyncRequest, report: SyncReport | None) -> None:
        """Schedule a retry of what the watcher's sync left; transcripts that grew too little have a
        timer of their own."""
        due = (
            (report.due_vectors + (0 if request.deltas else report.due_files))
            if report is not None
            else 1
        )
        if not due:
            self._retries, self._retry_at = 0, None
        elif request.reason in WATCHED:
            self._retries += 1
            self._retry_at = self._clock() + RETRY.wait(self._retries)

    def _show(self, progress: Progress) -> None:
        """Report progress to the callers of this sync and of the next."""
        self._stage = progress.stage
        with self._state:
            jobs = [job for job in (self._now, self._next) if job is not None]
            reason = self._now.request.reason if self._now is not None else ""
        for watching in dict.fromkeys(one for job in jobs for one in job.watching):
            watching(progress)
        self._notify(WatchEvent("progress", reason, progress=progress))


def merge_jobs(before: Job, after: Job, longest: float) -> Job:
    """Merge two requests: the earlier start counts, but a debounce starts again, up to
    `longest`."""
    first = min(before.first, after.first)
    settles = before.settles and after.settles
    return Job(
        request=merge_requests(before.request, after.request),
        at=min(after.at, first + longest) if settles else min(before.at, after.at),
        first=first,
        settles=settles,
        waiting=before.waiting + after.waiting,
        watching=before.watching + after.watching,
    )


def merge_requests(one: SyncRequest, other: SyncRequest) -> SyncRequest:
    """Return one request that does what both ask for."""
    return one._replace(
        reason=max(one.reason, other.reason, key=REASONS.index),
        force=one.force or other.force,
        instant_only=one.instant_only and other.instant_only,
        deltas=one.deltas and other.deltas,
        lock_timeout=max(one.lock_timeout, other.lock_timeout),
    )


def _closed() -> ClawmarkError:
    return ClawmarkError(
        "The memory was closed before the sync began.", hint="Open it again, then sync."
    )


def _nothing(_: WatchEvent) -> None:
    return None
