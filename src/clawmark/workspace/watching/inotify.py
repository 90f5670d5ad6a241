"""Linux's own word on what changes in folders, called through the C library because Python has no
module for it.

Paths to watch come in, events go out; what they mean is left to `watch`. One descriptor serves any
number of folders. On a system without inotify making an `Inotify` raises `OSError`."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from typing import NamedTuple

MODIFY, ATTRIB = 0x2, 0x4
MOVED_FROM, MOVED_TO = 0x40, 0x80
CREATE, DELETE = 0x100, 0x200
DELETE_SELF, MOVE_SELF = 0x400, 0x800
OVERFLOW, IGNORED = 0x4000, 0x8000
IS_FOLDER = 0x40000000
_ONLY_FOLDERS, _NO_LINKS, _NOT_AFTER_UNLINK = 0x1000000, 0x2000000, 0x4000000

# A transcript is held open while it grows, so a close is not waited for.
_CHANGES = MODIFY | ATTRIB | MOVED_FROM | MOVED_TO | CREATE | DELETE | DELETE_SELF | MOVE_SELF
_MASK = _CHANGES | _ONLY_FOLDERS | _NO_LINKS | _NOT_AFTER_UNLINK
_HEAD = struct.Struct("iIII")
_READ_BYTES = 65_536
_NONBLOCK, _CLOEXEC = 0o4000, 0o2000000


class Event(NamedTuple):
    """One thing that happened: in which watched folder, what, and to which name in it."""

    watch: int
    mask: int
    name: str


class Inotify:
    """One inotify instance; `most` stands in for the system's limit of watches."""

    def __init__(self, most: int | None = None) -> None:
        try:
            self._library = ctypes.CDLL(None, use_errno=True)
            start = self._library.inotify_init1
        except (
            OSError,
            AttributeError,
            TypeError,
        ):  # TypeError: Windows has no library without a name
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from None
        self._most = most
        self._watches = set[int]()
        self.descriptor: int = _checked(start(_NONBLOCK | _CLOEXEC))

    def add(self, folder: str) -> int:
        """Watch a folder (no link, and not what lies below it) and give its number; the same folder
        keeps its number.
        """
        if self._most is not None and len(self._watches) >= self._most:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        watch = _checked(
            self._library.inotify_add_watch(self.descriptor, os.fsencode(folder), _MASK)
        )
        self._watches.add(watch)
        return watch

    def remove(self, watch: int) -> None:
        """Stop watching; a watch that is gone already is no error."""
        self._watches.discard(watch)
        self._library.inotify_rm_watch(self.descriptor, watch)

    def read(self) -> list[Event]:
        """What has happened since the last call; empty when nothing has."""
        try:
            data = os.read(self.descriptor, _READ_BYTES)
        except BlockingIOError:
            return []
        events = []
        start = 0
        while start < len(data):
            watch, mask, _, length = _HEAD.unpack_from(data, start)
            start += _HEAD.size
            if mask & IGNORED:
                self._watches.discard(watch)
            events.append(
                Event(watch, mask, os.fsdecode(data[start : start + length].rstrip(b"\0")))
            )
            start += length
        return events

    def close(self) -> None:
        os.close(self.descriptor)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
