"""A disk that loses power: which states of a folder are possible, given what was synced.

Nothing is written differently. The calls that change files are followed by a look at the real
folder, and `os.fsync` marks the state of one file or one folder as durable. After a power loss each
file and each folder may be in any state it had since it was last synced, independently of all
others: a name may be there without the text, or the text without the name."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

Inode = tuple[int, int]
Names = dict[str, Inode]
CHANGES = (
    "open",
    "write",
    "ftruncate",
    "truncate",
    "replace",
    "rename",
    "link",
    "unlink",
    "mkdir",
    "rmdir",
    "close",
)


class Disk:
    """The possible states of a folder and of everything below it; a context in which changes are
    recorded.
    """

    def __init__(self, root: Path, watched: str = "") -> None:
        self.root = root
        self.ever: set[bytes | None] = set()
        """Every text the watched file could have had after a power loss during the context; None
        for no file.
        """
        self.check: Callable[[], None] = lambda: None
        """Called after each change and each sync."""
        self.syncs = 0
        self._watched = watched
        self._texts: dict[Inode, list[bytes]] = {}
        self._names: dict[Inode, list[Names]] = {}
        self._open = ExitStack()  # while a file is open, no other file gets its inode number
        self._is_looking = False

    def __enter__(self) -> Disk:
        self._look()
        for texts in self._texts.values():
            del texts[:-1]
        for names in self._names.values():
            del names[:-1]
        self.ever.clear()
        patch = pytest.MonkeyPatch()
        self._open.callback(patch.undo)
        for name in CHANGES:
            patch.setattr(os, name, self._followed_by_a_look(getattr(os, name)))
        patch.setattr(os, "fsync", self._synced(os.fsync))
        return self

    def __exit__(self, *_: object) -> None:
        self._is_looking = True
        self._open.close()

    # --- questions --------------------------------------------------------------------------------

    def possible(self, path: str) -> set[bytes | None]:
        """The texts that a file may have after a power loss; None stands for no file."""
        return set(self._possible(self._key(os.stat(self.root)), path.split("/")))

    def _possible(self, folder: Inode, parts: Sequence[str]) -> list[bytes | None]:
        found: list[bytes | None] = []
        for names in self._names[folder]:
            inode = names.get(parts[0])
            if inode is None:
                found.append(None)
            elif len(parts) > 1:
                found += self._possible(inode, parts[1:])
            else:
                found += self._texts[inode]
        return found

    def always_holds(self, path: str, text: bytes) -> bool:
        """Whether some file with exactly this text is below a folder after every power loss."""
        return self._always_holds(self._key(os.stat(self.root)), path.split("/"), text)

    def _always_holds(self, folder: Inode, parts: Sequence[str], text: bytes) -> bool:
        def holds(inode: Inode | None) -> bool:
            if inode in self._names:
                return self._always_holds(inode, parts[1:], text)
            return not parts and inode in self._texts and self._texts[inode] == [text]

        if parts:
            return all(holds(names.get(parts[0])) for names in self._names[folder])
        return all(any(map(holds, names.values())) for names in self._names[folder])

    # --- recording --------------------------------------------------------------------------------

    def _followed_by_a_look(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            done = real(*arguments, **named)
            self._look()
            return done

        return call

    def _synced(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def fsync(fd: int) -> None:
            self._look()
            real(fd)
            self.syncs += 1
            inode = self._key(os.fstat(fd))
            for states in (self._texts.get(inode), self._names.get(inode)):
                if states is not None:
                    del states[:-1]
            self._look()

        return fsync

    def _look(self) -> None:
        """Record the present state of everything, without recording what the look itself does."""
        if self._is_looking:
            return
        self._is_looking = True
        try:
            self._look_into(self.root)
            if self._watched:
                self.ever |= self.possible(self._watched)
            self.check()
        finally:
            self._is_looking = False

    def _look_into(self, folder: Path) -> None:
        names: Names = {}
        for path in folder.iterdir():
            info = path.lstat()
            if stat.S_ISDIR(info.st_mode):
                self._look_into(path)
            elif stat.S_ISREG(info.st_mode):
                self._add(self._texts, self._key(info), path.read_bytes(), b"", path)
            names[path.name] = self._key(info)
        self._add(self._names, self._key(folder.stat()), names, {}, folder)

    def _add(
        self, known: dict[Inode, list[Any]], inode: Inode, state: Any, empty: Any, path: Path
    ) -> None:
        if inode not in known:
            self._open.callback(os.close, os.open(path, os.O_RDONLY))
            known[inode] = [empty]
        if known[inode][-1] != state:
            known[inode].append(state)

    @staticmethod
    def _key(info: os.stat_result) -> Inode:
        return info.st_dev, info.st_ino
