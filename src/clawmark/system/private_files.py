"""Create and open files and folders that only their owner can read, under every umask.

Errors of the operating system are raised as they are.
"""

from __future__ import annotations

import errno
import os
import stat

FOLDER, FILE = 0o700, 0o600


def make_private_folder(folder: str) -> None:
    """Create a folder and its missing parents with mode 0700, durably; existing ones stay as is."""
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
    """Make created and renamed names in a folder durable, where the system can do that."""
    if os.name == "nt":
        return
    try:
        descriptor = os.open(folder or ".", os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except PermissionError:  # a folder that can be written to but not listed
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # some network file systems
            raise
    finally:
        os.close(descriptor)


def open_private(path: str, flags: int) -> int:
    """Open a file, creating it with mode 0600; links are not followed, children do not inherit it.

    A pipe or a device in its place is an OSError, and is not waited for.
    Windows and other systems without O_NOFOLLOW check for a link before opening."""
    if not hasattr(os, "O_NOFOLLOW") and os.path.islink(path):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), FILE)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise OSError(errno.EINVAL, "not a file", path)
        if flags & os.O_CREAT and hasattr(os, "fchmod") and mode & 0o777 != FILE:
            os.fchmod(descriptor, FILE)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
