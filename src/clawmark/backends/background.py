"""Syncs in the background of one memory, started when the first one is requested.

A sync that could not finish, because a service is away or the daily budget is used up, is not
requested again by every search: each failure doubles the pause before the next attempt."""

from __future__ import annotations

import os
import time
from _thread import allocate_lock
from collections.abc import Callable

from clawmark.backends.freshening import Worker
from clawmark.engine.sync.scan import SyncRequest
from clawmark.engine.sync.worker import SyncWorker
from clawmark.model.reports import WatchEvent
from clawmark.model.sync_report import SyncReport
from clawmark.system.backoff import Backoff
from clawmark.system.log_records import get_logger

RETRY = Backoff(first=60.0, longest=3600.0)
"""The pause between two attempts at what could not be finished."""


class Background:
    """The worker of one memory, and the listeners to its events."""

    def __init__(
        self, run: Callable[[SyncRequest], SyncReport], debounce: float, interval: float
    ) -> None:
        self._run = run
        self._debounce = debounce
        self._interval = interval
        self._making = allocate_lock()
        self._worker: SyncWorker | None = None
        self._listeners: list[Callable[[WatchEvent], None]] = []
        self._failures = 0
        self._pause_until = 0.0
        if interval:
            self.worker()

    def worker(self) -> SyncWorker:
        """Return the worker; the first call in a process makes it, also in a forked child."""
        with self._making:
            if self._worker is None or self._worker.pid != os.getpid():
                self._worker = SyncWorker(
                    self._run, debounce=self._debounce, interval=self._interval, notify=self.emit
                )
            return self._worker

    @property
    def _running(self) -> SyncWorker | None:
        worker = self._worker
        return worker if worker is not None and worker.pid == os.getpid() else None

    @property
    def is_begun(self) -> bool:
        """Whether there is a worker in this process."""
        return self._running is not None

    @property
    def is_busy(self) -> bool:
        """Whether a sync is running or about to."""
        worker = self._running
        return worker is not None and not worker.is_idle

    @property
    def state(self) -> Worker:
        """What the worker is doing now."""
        worker = self._running
        if worker is None:
            return Worker()
        return Worker(
            is_busy=not worker.is_idle,
            is_syncing=worker.is_at_work,
            is_indexing_files=worker.is_at_files,
        )

    @property
    def last_error(self) -> Exception | None:
        """Why the last sync failed."""
        worker = self._running
        return worker.last_error if worker is not None else None

    def ask(self, request: SyncRequest, *, settle: bool = False) -> None:
        """Request a sync; with `settle`, it starts once changes have stopped."""
        self.worker().ask(request, settle=settle)

    def sync(self, request: SyncRequest) -> SyncReport:
        """Request a sync and wait for its report."""
        return self.worker().sync(request)

    def hand_over(self, reason: str) -> None:
        """Request what a search had no time for, unless a sync is running or recently failed."""
        if not self.is_busy and time.monotonic() >= self._pause_until:
            self.ask(SyncRequest(reason=reason))

    def look(self) -> bool:
        """Request a look at the disk and the indexing of what changed; False while busy."""
        if self.is_busy:
            return False
        # Files are looked at during the pause too; only what failed is not tried again.
        self.ask(SyncRequest(reason="search", instant_only=time.monotonic() < self._pause_until))
        return True

    def listen(self, listener: Callable[[WatchEvent], None]) -> None:
        """Subscribe to events."""
        self._listeners.append(listener)

    def leave(self, listener: Callable[[WatchEvent], None]) -> None:
        """Unsubscribe."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def close(self, abort: Callable[[], None]) -> None:
        """Stop after the current batch; `abort` interrupts requests to services."""
        if self._worker is not None:
            self._worker.close(abort)

    def emit(self, event: WatchEvent) -> None:
        """Call every listener."""
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception:  # the caller's code: its failure must not stop the worker
                get_logger("clawmark.watch").warning("a listener failed", exc_info=True)

    def note_outcome(self, *, is_complete: bool) -> None:
        """Record whether a sync did everything; if not, the next hand-over waits."""
        self._failures = 0 if is_complete else self._failures + 1
        pause = RETRY.wait(self._failures) if self._failures else 0.0
        self._pause_until = time.monotonic() + pause
