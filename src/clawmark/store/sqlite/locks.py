"""The one lock that every write and every checkpoint of an index holds: a file beside it, locked by
the system.

SQLite has locks of its own, but two writers that also checkpoint can meet its WAL-reset bug, and a
waiting writer there is refused instead of queued. The system lets go of this lock when its holder
dies, however it dies. The file stays; it is empty."""

from __future__ import annotations

import errno
import os
import time
from _thread import allocate_lock  # a lock without `threading`, which costs a cold search 1 ms
from collections.abc import Iterator
from contextlib import contextmanager

from clawmark.model.errors import IndexBusy, IndexStoreError, advice
from clawmark.system.private_files import open_private

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# How often a waiting writer looks again: often enough not to notice, seldom enough not to burn a
# core.
FIRST_PAUSE, LONGEST_PAUSE = 0.0005, 0.01


class WriteLock:
    """Held by one thread of one process at a time."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.waits = 0
        """How often the lock was not free at once; for `status`."""
        self._threads = allocate_lock()

    @contextmanager
    def held(self, timeout: float) -> Iterator[None]:
        """Hold the lock for a block; `IndexBusy` when it is not had within `timeout` seconds (0 =
        do not wait).
        """
        deadline = time.monotonic() + timeout
        with self.held_by_thread(timeout):
            descriptor = self._lock_file(deadline)
            try:
                yield
            finally:
                # A child forked meanwhile has the descriptor too, so closing ours alone would not
                # release the lock.
                unlock(descriptor)
                os.close(descriptor)

    @contextmanager
    def held_by_thread(self, timeout: float) -> Iterator[None]:
        """Keep the other threads of this process out, but no other process."""
        is_free = self._threads.acquire(blocking=False)
        if not is_free and not self._threads.acquire(timeout=max(timeout, 0.0)):
            raise self._busy()
        try:
            self.waits += not is_free
            yield
        finally:
            self._threads.release()

    def _lock_file(self, deadline: float) -> int:
        pause = FIRST_PAUSE
        while True:
            descriptor = self._open()
            # When somebody deletes the file between our opening and locking it, the lock that
            # counts is the new file's.
            if self._is_ours(descriptor):
                return descriptor
            os.close(descriptor)
            self.waits += pause == FIRST_PAUSE
            if time.monotonic() + pause > deadline:
                raise self._busy()
            time.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _is_ours(self, descriptor: int) -> bool:
        try:
            return try_lock(descriptor) and _is_same_file(descriptor, self.path)
        except BaseException:
            os.close(descriptor)
            raise

    def _open(self) -> int:
        try:
            return open_private(self.path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise IndexStoreError(
                f"The lock {self.path} cannot be opened: {error.strerror}.",
                hint=advice(
                    error, "Check the folder's permissions, or choose another --state-dir."
                ),
            ) from error

    def _busy(self) -> IndexBusy:
        return IndexBusy(
            f"Another process is writing to the index ({self.path}).",
            hint="Wait for it to finish and try again.",
        )


def try_lock(descriptor: int) -> bool:
    """Lock an open file if it is free, and say whether it was."""
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            return False
        raise IndexStoreError(
            f"This file system cannot lock files: {error.strerror}.",
            hint="Choose a --state-dir on a local disk.",
        ) from error
    return True


def unlock(descriptor: int) -> None:
    """Release a lock."""
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    else:
        import msvcrt

        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)


def _is_same_file(descriptor: int, path: str) -> bool:
    try:
        there = os.stat(path, follow_symlinks=False)
    except OSError:
        return False
    return os.path.samestat(os.fstat(descriptor), there)
