"""Folders and files of our own state: for nobody else to look into, whatever the umask says.

A path comes in; a folder is there afterwards, or a descriptor comes out. What the system refuses is
raised as it is."""

from __future__ import annotations

import errno
import os

FOLDER, FILE = 0o700, 0o600


def make_private_folder(folder: str) -> None:
    """Create a folder and its missing parents with mode 0700, durably; folders that exist are left
    as they are.
    """
    if not folder or os.path.isdir(folder):
        return
    make_private_folder(os.path.dirname(folder))
    try:
        os.mkdir(folder, FOLDER)
    except FileExistsError:  # another process was faster
        return
    os.chmod(folder, FOLDER)
    sync_folder(os.path.dirname(folder))


def sync_folder(folder: str) -> None:
    """Make created and renamed names in a folder durable; does nothing where a folder cannot be
    synced.
    """
    if os.name == "nt":
        return
    try:
        descriptor = os.open(folder or ".", os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except PermissionError:  # a folder that may be written and not listed
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # some network file systems
            raise
    finally:
        os.close(descriptor)


def open_private(path: str, flags: int) -> int:
    """Open a file, with mode 0600 when `flags` create it; links are not followed, and a child
    process does not get it.
    """
    flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, FILE)
    try:
        if (
            flags & os.O_CREAT
            and hasattr(os, "fchmod")
            and os.fstat(descriptor).st_mode & 0o777 != FILE
        ):
            os.fchmod(descriptor, FILE)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
