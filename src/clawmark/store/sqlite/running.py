"""Which sync is under way, for `status`: a small file next to the index, locked by the process that
syncs.

The lock says whether the process is alive, since the system releases it however the process ends;
the file says what it does. When several processes sync at once, one of them is recorded. Nothing
here may stop a sync: where the file cannot be written, there is no record."""

from __future__ import annotations

import json
import os
from types import TracebackType

from clawmark.model.errors import ClawmarkError
from clawmark.store.sqlite.locks import try_lock, unlock
from clawmark.system.private_files import open_private

SUFFIX = ".sync"
LONGEST = 4096


class SyncRecord:
    """The record of one sync; a context manager. `facts` are what is known from the start."""

    def __init__(self, path: str, facts: dict[str, object]) -> None:
        self._path = path + SUFFIX
        self._facts = {"pid": os.getpid(), **facts}
        self._descriptor: int | None = None

    def note(self, **facts: object) -> None:
        """Say how far the sync is."""
        self._facts |= facts
        if self._descriptor is None:
            self._descriptor = _opened(self._path)
        if self._descriptor is not None:
            try:
                os.ftruncate(self._descriptor, 0)
                os.lseek(self._descriptor, 0, os.SEEK_SET)
                os.write(self._descriptor, json.dumps(self._facts).encode())
            except OSError:
                return

    def __enter__(self) -> SyncRecord:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._descriptor is not None:
            unlock(self._descriptor)
            os.close(self._descriptor)


def _opened(path: str) -> int | None:
    """The locked file; None when another process has it, or it cannot be made."""
    try:
        descriptor = open_private(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None
    try:
        if try_lock(descriptor):
            return descriptor
    except ClawmarkError:
        pass  # a file system without locks
    os.close(descriptor)
    return None


def running_sync(path: str) -> dict[str, object]:
    """What the sync of the index at `path` does that is under way now; empty when there is none."""
    try:
        flags = (
            os.O_RDWR
            | getattr(os, "O_NONBLOCK", 0)
            | getattr(os, "O_CLOEXEC", 0)
            | getattr(os, "O_NOFOLLOW", 0)
        )
        descriptor = os.open(path + SUFFIX, flags)
    except OSError:
        return {}
    try:
        if try_lock(descriptor):
            unlock(descriptor)
            return {}
        facts = json.loads(os.read(descriptor, LONGEST))
        return facts if isinstance(facts, dict) else {}
    except (OSError, ValueError, ClawmarkError):
        return {}
    finally:
        os.close(descriptor)
