"""Temporary files that writers create next to the file they replace.

A writer keeps its temporary file locked until it has renamed it, and the system releases the locks
of a process that dies. A temporary file whose lock is free thus has no living writer, and `sweep`
removes it. Only the holder of the lock renames or removes the file.
"""

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
"""How many names each write checks; an index run also finds those of many concurrent writers."""


def create_temporary(folder: Folder) -> tuple[int, str]:
    """Create and lock a temporary file; returns its descriptor, which holds the lock, and name."""
    for number in count():
        name = temporary_name(number)
        try:
            fd = folder.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            continue
        try:
            if try_lock(fd) and folder.holds(name, os.fstat(fd)):
                return fd, name
        except OSError:  # a file system without locks, where no file is ever swept
            return fd, name
        os.close(fd)  # a sweep opened the file before it was locked, and removes it
    raise AssertionError("count() does not end")


def remove_temporary(folder: Folder, name: str, info: os.stat_result) -> None:
    """Remove a temporary file whose lock is held, unless it was renamed and the name is reused."""
    if folder.holds(name, info):
        folder.unlink(name)


def sweep(folder: Folder, names: Iterable[str] = tuple(map(temporary_name, range(SLOTS)))) -> None:
    """Remove the temporary files that have no living writer, as far as they can be removed."""
    for name in names:
        with suppress(OSError):
            if os.name == "nt":  # Windows does not remove a file that a writer has open
                folder.unlink(name)
            else:
                _sweep_one(folder, name)


def _sweep_one(folder: Folder, name: str) -> None:
    folder.lstat(name)  # raises if there is none, so that indexing opens nothing for writing
    fd = folder.open(name, os.O_RDWR)
    try:
        info = os.fstat(fd)
        if stat.S_ISREG(info.st_mode) and try_lock(fd):
            remove_temporary(folder, name, info)
    finally:
        os.close(fd)
