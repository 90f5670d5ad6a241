"""Find the entries that came from outside, without parsing the whole journal.

A prompt asks before every turn, and a hook in a process of its own, so the journal is searched as
bytes: lines with the trust level, and the hashes on them. What was read is kept, and only what was
added since is read again."""

from __future__ import annotations

import os
import re
from collections.abc import Collection

from clawmark.model.provenance import Trust
from clawmark.system.private_files import open_private

_HASH = re.compile(rb'"([0-9a-f]{24})"')


class ExternalEntries:
    """The hashes of entries with the trust `external`, of one journal."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._external = _Hashes("external")
        self._owned = _Hashes("owner")

    @property
    def version(self) -> tuple[int, int]:
        """Changes when the journal does: its inode and its size."""
        try:
            info = os.stat(self.path)
        except OSError:
            return (0, 0)
        return (info.st_ino, info.st_size)

    def among(self, hashes: Collection[str]) -> frozenset[str]:
        """Return those of the hashes that came from outside and were never the user's own words.

        Without a readable journal there are none: losing it loses labels, never memory."""
        if not hashes:
            return frozenset()
        wanted = {one.encode() for one in hashes}
        try:
            found = self._read(self._external) & wanted
            if found:
                found -= self._read(self._owned)
        except OSError:
            return frozenset()
        return frozenset(one.decode() for one in found)

    def _read(self, hashes: _Hashes) -> set[bytes]:
        """Bring some hashes up to date with the file, and return them."""
        try:
            descriptor = open_private(self.path, os.O_RDONLY)
        except FileNotFoundError:
            hashes.clear()
            return hashes.found
        with open(descriptor, "rb") as file:
            info = os.fstat(file.fileno())
            if hashes.inode != info.st_ino or info.st_size < hashes.offset:
                hashes.clear()
                hashes.inode = info.st_ino
            file.seek(hashes.offset)
            hashes.add(file.read())
        return hashes.found


class _Hashes:
    """The hashes on the lines with one trust level, as far as the journal was read."""

    def __init__(self, trust: Trust) -> None:
        self._line = re.compile(rb'"trust":"%s"[^\n]*' % trust.encode())
        self.clear()

    def clear(self) -> None:
        self.inode = 0
        self.offset = 0
        self.found: set[bytes] = set()

    def add(self, data: bytes) -> None:
        """Add what was read from `offset` on; a line that is not complete is read again later."""
        for line in self._line.findall(data):
            self.found.update(_HASH.findall(line))
        self.offset += data.rfind(b"\n") + 1
