"""Folders and files of our own state: for nobody else to look into, whatever the umask says.

A path comes in; a folder is there afterwards, or a descriptor comes out. What the system refuses is raised as it is.
"""

from __future__ import annotations

import os

FOLDER, FILE = 0o700, 0o600


def make_private_folder(folder: str) -> None:
    """Create a folder and its missing parents with mode 0700; folders that exist are left as they are."""
    if not folder or os.path.isdir(folder):
        return
    make_private_folder(os.path.dirname(folder))
    try:
        os.mkdir(folder, FOLDER)
    except FileExistsError:  # another process was faster
        return
    os.chmod(folder, FOLDER)


def open_private(path: str, flags: int) -> int:
    """Open a file, with mode 0600 when `flags` create it; links are not followed, and a child process does not get it."""
    flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, FILE)
    try:
        if flags & os.O_CREAT and hasattr(os, "fchmod") and os.fstat(descriptor).st_mode & 0o777 != FILE:
            os.fchmod(descriptor, FILE)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
