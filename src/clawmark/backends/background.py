"""What a memory does beside answering: syncs in the background, begun only when there is something
to do.

In: requests of searches, sessions and watchers. Out: the same requests in the hands of a keeper,
whose thread begins with the first of them. How often a search that finds something due may hand it
over is decided here: after a sync that could not finish (a service that is away, a budget that is
used up) the next one waits, longer each time."""

from __future__ import annotations

import logging
import os
import time
from _thread import allocate_lock
from collections.abc import Callable
from typing import TYPE_CHECKING

from clawmark.engine.sync.run import SyncRequest
from clawmark.engine.sync.worker import SyncWorker

if TYPE_CHECKING:
    from clawmark.engine.sync.run import SyncRequest
    from clawmark.engine.sync.worker import SyncWorker
    from clawmark.model.reports import SyncReport, WatchEvent

FIRST_REST, LONGEST_REST = 60.0, 3600.0
"""Seconds between two tries at what could not be finished, doubling."""


class Background:
    """The keeper of one memory, and those who listen to it."""

    def __init__(
        self, run: Callable[[SyncRequest], SyncReport], debounce: float, interval: float
    ) -> None:
        self._run = run
        self._debounce = debounce
        self._interval = interval
        self._making = allocate_lock()
        self._keeper: SyncWorker | None = None
        self._listeners: list[Callable[[WatchEvent], None]] = []
        self._rest = 0.0
        self._rest_until = 0.0
        if interval:
            self.keeper()

    def keeper(self) -> SyncWorker:
        """The keeper, made when it is first asked for, and anew in a forked child, which has no
        threads of its parent.
        """
        with self._making:
            if self._keeper is None or self._keeper.pid != os.getpid():
                self._keeper = SyncWorker(
                    self._run, debounce=self._debounce, interval=self._interval, tell=self.tell
                )
            return self._keeper

    @property
    def is_begun(self) -> bool:
        """Whether there is a keeper in this process."""
        return self._keeper is not None and self._keeper.pid == os.getpid()

    @property
    def is_busy(self) -> bool:
        """Whether a sync runs or is about to."""
        return self._keeper is not None and self.is_begun and not self._keeper.is_idle

    @property
    def is_at_work(self) -> bool:
        """Whether a sync runs now."""
        return self._keeper is not None and self.is_begun and self._keeper.is_at_work

    @property
    def is_at_files(self) -> bool:
        """Whether a sync runs now that still indexes files."""
        return self._keeper is not None and self.is_begun and self._keeper.is_at_files

    @property
    def last_error(self) -> Exception | None:
        """Why the last sync in the background failed."""
        return self._keeper.last_error if self._keeper is not None and self.is_begun else None

    def ask(self, request: SyncRequest, *, settle: bool = False) -> None:
        """Have a sync made; see `SyncWorker.ask`."""
        self.keeper().ask(request, settle=settle)

    def sync(self, request: SyncRequest) -> SyncReport:
        """Have a sync made and wait for its report."""
        return self.keeper().sync(request)

    def hand_over(self, reason: str) -> bool:
        """Have done what a search had no time for; False when that is under way already, or was
        tried in vain just now.
        """
        if self.is_busy or time.monotonic() < self._rest_until:
            return False

        self.ask(SyncRequest(reason=reason))
        return True

    def look(self) -> bool:
        """Have the disk looked at and what changed indexed; False while another sync runs or is
        about to.
        """
        if self.is_busy:
            return False

        # What could not be finished (a service that is away) is not tried again; files are looked
        # at all the same.
        self.ask(SyncRequest(reason="search", instant_only=time.monotonic() < self._rest_until))
        return True

    def listen(self, listener: Callable[[WatchEvent], None]) -> None:
        """Tell somebody what happens from here on."""
        self._listeners.append(listener)

    def leave(self, listener: Callable[[WatchEvent], None]) -> None:
        """Tell him no more."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def close(self, abort: Callable[[], None]) -> None:
        """End after the batch at hand; `abort` cuts short what waits for a service."""
        if self._keeper is not None:
            self._keeper.close(abort)

    def tell(self, event: WatchEvent) -> None:
        """Tell all who listen; a listener's own trouble is neither the keeper's nor the watcher's."""
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception:
                logging.getLogger("clawmark.watch").warning("a listener failed", exc_info=True)

    def rest(self, *, is_needed: bool) -> None:
        """Note how a sync ended: one that could not finish is not asked for again by the next
        search.
        """
        self._rest = min(max(FIRST_REST, 2 * self._rest), LONGEST_REST) if is_needed else 0.0
        self._rest_until = time.monotonic() + self._rest
