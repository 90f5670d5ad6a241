"""Examines the files of an index without opening the database."""

from __future__ import annotations

import os
import stat

from clawmark.model.errors import IndexDamaged
from clawmark.store.sqlite.schema import FIX_HINT

Stamp = tuple[int, int, int, int]
NO_STAMP: Stamp = (0, 0, 0, 0)
SIDECARS = ("-wal", "-shm", "-journal")


def files_of(path: str) -> tuple[int, int, int] | None:
    """Return the part of the stamp that identifies the index: main file and log."""
    stamp = stamp_of(path)
    return None if stamp is None else stamp[:3]


def stamp_of(path: str) -> Stamp | None:
    """Return device and inode of the index and the inodes of its sidecars; None if there is no
    index.

    The files may be deleted at any time. A connection to a deleted log or index must not write any
    more."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino, _inode(path + "-wal"), _inode(path + "-shm")


def read_seal(path: str) -> str:
    """Return the id of the index if its main file is as the last writer left it; else an empty
    string."""
    try:
        facts = os.stat(path)
        flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(path + ".seal", flags)
    except OSError:
        return ""
    try:
        size, mtime, name = (os.read(descriptor, 100).decode("ascii", "replace") + "  ").split(" ")[
            :3
        ]
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return name if (size, mtime) == (str(facts.st_size), str(facts.st_mtime_ns)) else ""


def is_absent(path: str) -> bool:
    """Return whether there is no such file. A file in a folder that cannot be entered is not
    absent; opening it reports why."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def check_files(path: str) -> None:
    """Refuse an index if one of its files is not a regular file: SQLite would hang on a FIFO."""
    thing = not_a_file(path)
    if thing:
        raise IndexDamaged(f"{thing}, not a file of an index.", hint=FIX_HINT)


def not_a_file(path: str) -> str:
    """Describe the first of an index's files that exists and is not a regular file; else return an
    empty string."""
    for suffix in ("", *SIDECARS):
        try:
            mode = os.stat(path + suffix, follow_symlinks=not suffix).st_mode
        except OSError:
            continue
        if not stat.S_ISREG(mode):
            kinds = {
                stat.S_IFDIR: "a directory",
                stat.S_IFIFO: "a FIFO",
                stat.S_IFLNK: "a symbolic link",
            }
            return f"{path}{suffix} is {kinds.get(stat.S_IFMT(mode), 'a special file')}"
    return ""


def main_file(path: str) -> tuple[int, int, int]:
    """Device and inode of the main file, and when it was last changed or renamed."""
    try:
        facts = os.stat(path)
    except OSError:
        return 0, 0, 0
    return facts.st_dev, facts.st_ino, facts.st_ctime_ns


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0
