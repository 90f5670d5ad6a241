"""One lock per memory file, for every program of Clawmark that writes.

In: a workspace, a path and the folder for lock files. Out: a context in which no other process or thread of Clawmark
writes that file. The lock is advisory and belongs to an open descriptor, so a killed holder frees it; the lock file
stays and means nothing by itself. Without a folder for locks the workspace folder itself is locked.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from clawmark.errors import WorkspaceError
from clawmark.workspace.guard import Folder, reason_of, shown

_PATIENCE = 30.0
"""Seconds. A holder needs milliseconds; one that takes this long is stopped or on a hanging disk."""


@contextmanager
def locked(root: Folder, path: str, lock_dir: str | None) -> Iterator[None]:
    """Hold the lock of one file of a workspace."""
    try:
        fd = _lock_file(root, path, lock_dir)
    except OSError as error:
        raise _no_lock(path, error) from error
    try:
        if fd is not None:
            _wait(fd, path)
        yield
    finally:
        if fd is not None:
            os.close(fd)


def _wait(fd: int, path: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            if _try_lock(fd):
                return
        except OSError as error:
            raise _no_lock(path, error) from error
        if time.monotonic() > deadline:
            raise WorkspaceError(
                f"Another process has been writing {shown(path)} for {_PATIENCE:.0f} seconds.",
                hint="Look for a stopped clawmark process.",
            )
        time.sleep(0.002)


def _no_lock(path: str, error: OSError) -> WorkspaceError:
    return WorkspaceError(
        f"The lock for {shown(path)} cannot be taken: {reason_of(error)}.", hint="Check the state folder and its disk."
    )


def _lock_file(root: Folder, path: str, lock_dir: str | None) -> int | None:
    if lock_dir is None:
        return None if root.fd is None else os.open(root.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    import hashlib

    os.makedirs(lock_dir, mode=0o700, exist_ok=True)
    name = hashlib.sha256(f"{root.path}\0{path}".encode()).hexdigest()[:32]
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    return os.open(os.path.join(lock_dir, f"{name}.lock"), flags, 0o600)


if sys.platform == "win32":
    import msvcrt

    def _try_lock(fd: int) -> bool:
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
