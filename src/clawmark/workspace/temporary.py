"""Temporary files that writers make next to the file they replace.

In: an opened folder. Out: a new temporary file, or a folder without those that killed writers left.
A writer keeps its temporary file locked until it has renamed it, and the system releases the locks
of a process that dies. So a temporary file whose lock is free has no living writer. Only the holder
of the lock renames or removes the file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from itertools import count

from clawmark.system.file_lock import try_lock
from clawmark.workspace.guard import Folder
from clawmark.workspace.places import temporary_name

SLOTS = 8
"""How many names each write looks at.

An index also finds higher ones, which many writers at once in one folder leave.
"""


def create_temporary(folder: Folder) -> tuple[int, str]:
    """Make a temporary file and lock it for as long as the descriptor is open; the descriptor and
    the file's name.
    """
    for number in count():
        name = temporary_name(number)
        try:
            fd = folder.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            continue
        try:
            if try_lock(fd) and folder.holds(name, os.fstat(fd)):
                return fd, name
        except OSError:  # a file system without locks: no file is ever swept there
            return fd, name
        os.close(fd)  # a sweep opened the file before it was locked, and removes it
    raise AssertionError("count() does not end")


def remove_temporary(folder: Folder, name: str, info: os.stat_result) -> None:
    """Remove a temporary file whose lock is held, unless it was renamed; by then another writer may
    use the name.
    """
    if folder.holds(name, info):
        folder.unlink(name)


def sweep(folder: Folder, names: Iterable[str] = tuple(map(temporary_name, range(SLOTS)))) -> None:
    """Remove the temporary files that have no living writer; one that cannot be removed is left for
    the next sweep.
    """
    for name in names:
        with suppress(OSError):
            if os.name == "nt":  # a file that a writer has open cannot be removed there
                folder.unlink(name)
            else:
                _sweep_one(folder, name)


def _sweep_one(folder: Folder, name: str) -> None:
    folder.lstat(
        name
    )  # raises for a free name: indexing opens nothing for writing in a workspace without such files
    fd = folder.open(name, os.O_RDWR)
    try:
        info = os.fstat(fd)
        if stat.S_ISREG(info.st_mode) and try_lock(fd):
            remove_temporary(folder, name, info)
    finally:
        os.close(fd)
