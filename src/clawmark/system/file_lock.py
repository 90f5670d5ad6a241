"""One lock per memory file, for every program of Clawmark that writes.

In: a workspace, a path and the folder for lock files. Out: a context in which no other process or
thread of Clawmark writes that file. The lock is advisory and belongs to an open descriptor, so a
killed holder frees it; the lock file stays and means nothing by itself. Without a folder for locks
the workspace folder itself is locked."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from clawmark.model.errors import WorkspaceError, advice
from clawmark.system.cancellation import go_on
from clawmark.system.private_files import make_private_folder, open_private
from clawmark.workspace.guard import Folder, reason_of, shown

_PATIENCE = 30.0
"""Seconds.

A holder needs milliseconds; one that takes this long is stopped or on a hanging disk.
"""


@contextmanager
def locked(root: Folder, path: str, lock_dir: str | None) -> Iterator[None]:
    """Hold the lock of one file of a workspace."""
    if lock_dir is None and root.fd is None:
        yield  # a folder cannot be opened here, so there is nothing to lock
        return
    try:
        fd = _acquired(root, path, lock_dir)
    except OSError as error:
        raise _no_lock(path, error) from error
    try:
        yield
    finally:
        os.close(fd)


def _acquired(root: Folder, path: str, lock_dir: str | None) -> int:
    """A descriptor that holds the lock."""
    file = root.path if lock_dir is None else os.path.join(lock_dir, _name_of(root, path))
    deadline = time.monotonic() + _PATIENCE
    while True:
        go_on()  # writing begins with the lock; what has begun is finished
        if lock_dir is not None:
            make_private_folder(lock_dir)
        fd = _opened(file, is_folder=lock_dir is None)
        if _is_ours(fd, file):
            return fd
        os.close(fd)
        if time.monotonic() > deadline:
            raise WorkspaceError(
                f"Another process has been writing {shown(path)} for {_PATIENCE:.0f} seconds.",
                hint="Look for a stopped clawmark process.",
            )
        time.sleep(0.002)


def _is_ours(fd: int, file: str) -> bool:
    """Whether we hold the lock, and of the file that is there: when it was deleted meanwhile, the
    new one's counts.
    """
    try:
        return try_lock(fd) and os.path.samestat(os.fstat(fd), os.stat(file, follow_symlinks=False))
    except FileNotFoundError:
        return False
    except BaseException:
        os.close(fd)
        raise


def _no_lock(path: str, error: OSError) -> WorkspaceError:
    return WorkspaceError(
        f"The lock for {shown(path)} cannot be taken: {reason_of(error)}.",
        hint=advice(error, "Check the state folder and its disk."),
    )


def _name_of(root: Folder, path: str) -> str:
    return hashlib.sha256(f"{root.path}\0{path}".encode()).hexdigest()[:32] + ".lock"


def _opened(file: str, *, is_folder: bool) -> int:
    return open_private(file, os.O_RDONLY if is_folder else os.O_RDWR | os.O_CREAT)


if sys.platform == "win32":
    import msvcrt

    def try_lock(fd: int) -> bool:
        """Lock an open file until its descriptor is closed; False when another descriptor holds the
        lock.
        """
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def try_lock(fd: int) -> bool:
        """Lock an open file until its descriptor is closed; False when another descriptor holds the
        lock.
        """
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
