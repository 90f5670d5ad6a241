"""Small JSON files in the state folder that several processes share: read whole, replaced whole,
under a lock beside them.

In: a path and a plain object. Out: the object as it was last written. What it means is left to the
callers, and so is what to do about a damaged file or a disk that refuses."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from clawmark.system.private_files import make_private_folder, open_private

MOST_BYTES = 64 << 20
"""What is larger was not written by us: twenty batch jobs of 50,000 texts need as much."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.01
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)


@contextmanager
def locked(path: str, patience: float) -> Iterator[bool]:
    """Hold the lock of a state file for a block; False when another process kept it for `patience`
    seconds.
    """
    make_private_folder(os.path.dirname(path))
    # A file of its own: the state file is replaced, and a lock on the old one would keep nobody
    # out.
    descriptor = open_private(f"{path}.lock", os.O_RDWR | os.O_CREAT)
    try:
        deadline, pause = time.monotonic() + patience, _FIRST_PAUSE
        while not (is_held := _try_lock(descriptor)) and time.monotonic() < deadline:
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
        try:
            yield is_held
        finally:
            if is_held:
                _unlock(descriptor)
    finally:
        os.close(descriptor)


def load(path: str) -> dict[str, object] | None:
    """The object in the file, None when there is no file; raises ValueError when it is damaged and
    OSError like `open`.
    """
    try:
        descriptor = os.open(
            path, os.O_RDONLY | _CLOEXEC | _NOFOLLOW | getattr(os, "O_NONBLOCK", 0)
        )
        with open(descriptor, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        # A folder or a link in place of the file is damage; too many open files or a failing disk
        # say nothing about it.
        if error.errno in (errno.EISDIR, errno.ELOOP):
            raise ValueError("not a file") from error
        raise
    if len(data) > MOST_BYTES:
        raise ValueError("too large")
    try:
        value = json.loads(data)
    except RecursionError as error:
        raise ValueError("too deep") from error
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def save(path: str, value: dict[str, object], *, durable: bool = False) -> None:
    """Replace the file in one step, readable by its owner alone; call it with the lock held."""
    beside = f"{path}.new"
    # A file left there by a killed process is ours to overwrite: nobody else has the lock.
    descriptor = open_private(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    with open(descriptor, "w", encoding="utf-8") as file:
        json.dump(value, file, separators=(",", ":"))
        if durable:
            file.flush()
            os.fsync(file.fileno())
    os.replace(beside, path)


def set_aside(path: str) -> None:
    """Give a damaged file another name, in place of the one set aside before; what is absent stays
    absent.
    """
    with contextlib.suppress(OSError):
        os.replace(path, f"{path}.damaged")


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
