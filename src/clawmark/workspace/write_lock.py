"""The lock that every write to a memory file holds."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

from clawmark.model.errors import WorkspaceError, advice
from clawmark.system import file_lock
from clawmark.system.cancellation import check_cancelled
from clawmark.system.private_files import make_private_folder
from clawmark.workspace.guard import Folder, reason_of, shown

_TIMEOUT = 30.0
"""Seconds. A write takes milliseconds; a longer one is stopped or on a disk that hangs."""


@contextmanager
def locked(root: Folder, path: str, lock_dir: str | None) -> Iterator[None]:
    """Hold the lock of one file of a workspace; without a folder for locks, that of the workspace.

    A cancelled call stops waiting for the lock; once it holds the lock, it finishes its write."""
    if lock_dir is None and root.fd is None:
        yield  # Windows cannot open a folder, so there is nothing to lock
        return
    try:
        descriptor = _acquire(root, path, lock_dir)
    except OSError as error:
        raise WorkspaceError(
            f"The lock for {shown(path)} cannot be taken: {reason_of(error)}.",
            hint=advice(error, "Check the state folder and its disk."),
        ) from error
    if descriptor is None:
        raise WorkspaceError(
            f"Another process has been writing {shown(path)} for {_TIMEOUT:.0f} seconds.",
            hint="Look for a stopped clawmark process.",
        )
    try:
        yield
    finally:
        file_lock.release(descriptor)


def _acquire(root: Folder, path: str, lock_dir: str | None) -> int | None:
    if lock_dir is None:
        return file_lock.acquire(root.path, _TIMEOUT, flags=os.O_RDONLY, on_attempt=check_cancelled)
    name = hashlib.sha256(f"{root.path}\0{path}".encode()).hexdigest()[:32] + ".lock"

    def prepare() -> None:
        check_cancelled()
        make_private_folder(lock_dir)

    return file_lock.acquire(os.path.join(lock_dir, name), _TIMEOUT, on_attempt=prepare)
