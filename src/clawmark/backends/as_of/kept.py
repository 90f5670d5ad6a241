"""The indexes of earlier versions that are kept, and their removal.

They live in a folder of their own, one SQLite file per version. They are derived from the history
and can be deleted at any time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from clawmark.model.errors import IndexBusy
from clawmark.system import file_lock
from clawmark.system.private_files import make_private_folder

MOST_KEPT = 4
MOST_BYTES = 256 << 20
"""How many indexes are kept, and how large all of them may be; the newest one always is."""
LOCK_SECONDS = 120.0


def index_path(folder: str, version: str) -> str:
    """Return the path of the index of a version."""
    return os.path.join(folder, f"{version}.sqlite")


@contextmanager
def building(folder: str, seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """Hold the lock of a folder: one process at a time builds or removes indexes in it."""
    make_private_folder(os.path.dirname(folder))
    descriptor = file_lock.acquire(f"{folder}.lock", seconds)
    if descriptor is None:
        raise IndexBusy(
            "Another process is building the index of an earlier day.",
            hint="Try again when it has finished.",
        )
    try:
        yield
    finally:
        file_lock.release(descriptor)


def forget_as_of(folder: str) -> None:
    """Delete every index of an earlier version; call it after the history was rewritten.

    An index that is being built from the old history is waited for and deleted as well."""
    with building(folder):
        shutil.rmtree(folder, ignore_errors=True)
        if os.path.lexists(folder):  # a file of it is in use, or may not be removed
            shutil.rmtree(folder)


def remove_vanished(folder: str, exists: Callable[[str], bool]) -> None:
    """Remove the indexes of versions that no longer exist; a process that builds one right now does
    it itself when it has finished."""
    if os.path.isdir(folder):
        with suppress(IndexBusy), building(folder, 0.0):
            remove_old(folder, exists, keep="")


def remove_old(folder: str, exists: Callable[[str], bool], keep: str) -> list[str]:
    """Remove the indexes of versions that no longer exist, and the oldest ones beyond the limits.

    Return the removed versions. The index of the version `keep` stays. Requires the lock."""
    removed, count, size = list[str](), 0, 0
    for version in _newest_first(folder, keep):
        bytes_here = sum(os.path.getsize(path) for path in _files_of(folder, version))
        count, size = count + 1, size + bytes_here
        is_kept = count <= MOST_KEPT and size <= MOST_BYTES and exists(version)
        if version != keep and not is_kept:
            for path in _files_of(folder, version):
                os.unlink(path)
            removed.append(version)
            count, size = count - 1, size - bytes_here
    return removed


def _newest_first(folder: str, first: str) -> list[str]:
    times = {
        entry.name.partition(".")[0]: entry.stat().st_mtime_ns
        for entry in os.scandir(folder)
        if entry.name.endswith(".sqlite")
    }
    return sorted(times, key=lambda version: (version != first, -times[version]))


def _files_of(folder: str, version: str) -> list[str]:
    """Return the files of an index: the database, its log, its locks and damaged copies."""
    return [entry.path for entry in os.scandir(folder) if entry.name.startswith(f"{version}.")]
