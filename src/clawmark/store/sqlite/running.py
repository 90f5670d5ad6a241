"""The record of the running sync, for `status`: a small file next to the index.

The syncing process keeps it locked, so the lock tells whether the process is alive. When several
processes sync at once, one of them is recorded. A record that cannot be written never stops a sync.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from types import TracebackType

from clawmark.system import file_lock
from clawmark.system.private_files import open_private

SUFFIX = ".sync"
LONGEST = 4096
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)


class SyncRecord:
    """The record of one sync, a context manager; `facts` are known from the start."""

    def __init__(self, path: str, facts: dict[str, object]) -> None:
        self._path = path + SUFFIX
        self._facts = {"pid": os.getpid(), **facts}
        self._descriptor: int | None = None

    def note(self, **facts: object) -> None:
        """Record how far the sync is."""
        self._facts |= facts
        with suppress(OSError):  # no permission, a full disk, a file system without locks
            if self._descriptor is None:
                flags = os.O_RDWR | os.O_CREAT | _NONBLOCK
                self._descriptor = file_lock.acquire(self._path, 0, flags=flags)
            if self._descriptor is not None:
                os.ftruncate(self._descriptor, 0)
                os.lseek(self._descriptor, 0, os.SEEK_SET)
                os.write(self._descriptor, json.dumps(self._facts).encode())

    def __enter__(self) -> SyncRecord:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._descriptor is not None:
            file_lock.release(self._descriptor)


def running_sync(path: str) -> dict[str, object]:
    """Return what the running sync of the index at `path` does; empty when none runs."""
    try:
        descriptor = open_private(path + SUFFIX, os.O_RDWR | _NONBLOCK)
    except OSError:
        return {}
    try:
        if file_lock.try_lock(descriptor):
            file_lock.unlock(descriptor)
            return {}
        facts = json.loads(os.read(descriptor, LONGEST))
        return facts if isinstance(facts, dict) else {}
    except (OSError, ValueError):
        return {}
    finally:
        os.close(descriptor)
