"""Small JSON files in the state folder that several processes share.

A file is read and replaced as a whole, under a lock. Callers decide what to do about a damaged file
or a failing disk.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager

from clawmark.system import file_lock
from clawmark.system.private_files import make_private_folder, open_private

MOST_BYTES = 64 << 20
"""The size of twenty batch jobs of 50,000 texts; a larger file is not one of ours."""


@contextmanager
def locked(path: str, timeout: float) -> Iterator[bool]:
    """Hold the lock of a state file for a block; False if another process keeps it for `timeout`
    seconds.

    The lock is a file of its own, because the state file is replaced by every `save`."""
    make_private_folder(os.path.dirname(path))
    descriptor = file_lock.acquire(f"{path}.lock", timeout)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            file_lock.release(descriptor)


def load(path: str) -> dict[str, object] | None:
    """Read the object in the file; None if there is no file.

    Raises ValueError if the file is damaged, and OSError like `open`."""
    try:
        with open(open_private(path, os.O_RDONLY), "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        # A folder, a link, a pipe or a socket in place of the file is damage; other errors say
        # nothing about it.
        if error.errno in (errno.EISDIR, errno.ELOOP, errno.EINVAL, errno.ENXIO):
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
    """Replace the file in one step, readable by its owner only; call it with the lock held."""
    temporary = f"{path}.new"  # may be left over from a killed process; the lock makes it ours
    descriptor = open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    with open(descriptor, "w", encoding="utf-8") as file:
        # Not `dump`, which is several times slower.
        file.write(json.dumps(value, separators=(",", ":")))
        if durable:
            file.flush()
            os.fsync(file.fileno())
    os.replace(temporary, path)


def set_aside(path: str) -> None:
    """Rename a damaged file to `<path>.damaged`, replacing an earlier one."""
    with contextlib.suppress(OSError):
        os.replace(path, f"{path}.damaged")
