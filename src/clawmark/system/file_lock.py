"""Locks between processes and threads, as files.

A lock is advisory and belongs to an open descriptor: the operating system releases it when its
holder exits, however that happens. The lock file itself stays and means nothing.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable
from itertools import count

from clawmark.system.backoff import Backoff
from clawmark.system.private_files import open_private

PAUSE = Backoff(first=0.0005, longest=0.01)
"""Between two attempts: short enough to go unnoticed, long enough not to use up a core."""


def acquire(
    path: str,
    timeout: float,
    *,
    flags: int = os.O_RDWR | os.O_CREAT,
    on_attempt: Callable[[], None] | None = None,
) -> int | None:
    """Open and lock a file; None if another holder keeps it for `timeout` seconds (0: one attempt).

    `on_attempt` is called before each attempt. The caller passes the descriptor to `release`."""
    deadline = time.monotonic() + timeout
    for attempt in count(1):
        if on_attempt is not None:
            on_attempt()
        descriptor = open_private(path, flags)
        try:
            if try_lock(descriptor) and is_at(descriptor, path):
                return descriptor
        except BaseException:  # also on KeyboardInterrupt
            os.close(descriptor)
            raise
        os.close(descriptor)
        pause = PAUSE.wait(attempt)
        if time.monotonic() + pause > deadline:
            break
        time.sleep(pause)
    return None


def release(descriptor: int) -> None:
    """Unlock and close. A forked child shares the descriptor, so closing alone would not unlock."""
    unlock(descriptor)
    os.close(descriptor)


def is_at(descriptor: int, path: str) -> bool:
    """Whether the open file is still at `path`: a lock on a deleted file protects nothing."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    _LOCKED_BYTE = 1 << 30
    """Far behind the end of every lock file: others cannot read a locked byte on Windows."""

    def try_lock(descriptor: int) -> bool:
        """Lock an open file unless another descriptor holds the lock; whether it is locked now."""
        try:
            _locking(descriptor, msvcrt.LK_NBLCK)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                return False
            raise
        return True

    def unlock(descriptor: int) -> None:
        """Release the lock of an open file."""
        _locking(descriptor, msvcrt.LK_UNLCK)

    def _locking(descriptor: int, mode: int) -> None:
        position = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, mode, 1)
        finally:
            os.lseek(descriptor, position, os.SEEK_SET)

else:
    import fcntl

    def try_lock(descriptor: int) -> bool:
        """Lock an open file unless another descriptor holds the lock; whether it is locked now."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def unlock(descriptor: int) -> None:
        """Release the lock of an open file."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)
