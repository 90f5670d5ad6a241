"""The lock that every write and every checkpoint of an index holds: a file next to the index.

SQLite has locks of its own, but two writers that also checkpoint can trigger its WAL-reset bug, and
SQLite refuses a waiting writer instead of queueing it.
"""

from __future__ import annotations

import time
from _thread import allocate_lock  # a lock without `threading`, which costs a cold search 1 ms
from collections.abc import Iterator
from contextlib import contextmanager

from clawmark.model.errors import IndexBusy, IndexStoreError, advice
from clawmark.system import file_lock


class WriteLock:
    """Held by one thread of one process at a time."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.waits = 0
        """How often the lock was not free at once; for `status`."""
        self._threads = allocate_lock()

    @contextmanager
    def held(self, timeout: float) -> Iterator[None]:
        """Hold the lock for a block; `IndexBusy` after `timeout` seconds (0: one attempt)."""
        deadline = time.monotonic() + timeout
        with self.held_by_thread(timeout):
            descriptor = self._acquire(deadline)
            try:
                yield
            finally:
                file_lock.release(descriptor)

    @contextmanager
    def held_by_thread(self, timeout: float) -> Iterator[None]:
        """Exclude the other threads of this process, but not other processes."""
        is_free = self._threads.acquire(blocking=False)
        if not is_free and not self._threads.acquire(timeout=max(timeout, 0.0)):
            raise self._busy()
        try:
            self.waits += not is_free
            yield
        finally:
            self._threads.release()

    def _acquire(self, deadline: float) -> int:
        try:
            descriptor = file_lock.acquire(self.path, 0)
            if descriptor is None:
                self.waits += 1
                descriptor = file_lock.acquire(self.path, deadline - time.monotonic())
        except OSError as error:
            raise IndexStoreError(
                f"The lock {self.path} cannot be taken: {error.strerror}.",
                hint=advice(
                    error, "Check the folder's permissions, or choose another --state-dir."
                ),
            ) from error
        if descriptor is None:
            raise self._busy()
        return descriptor

    def _busy(self) -> IndexBusy:
        return IndexBusy(
            f"Another process is writing to the index ({self.path}).",
            hint="Wait for it to finish and try again.",
        )
