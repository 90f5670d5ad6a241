"""Which folders the system watches for us: all that hold memory files, kept in step as folders
come, move and go.

Targets come in (folders, which need not be there yet); paths that changed go out, or the word that
everything has to be set up anew. Waiting for events and what to do about a change are left to
`watch`."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from clawmark.workspace.guard import MAX_COMPONENTS, is_utf8
from clawmark.workspace.places import is_below, is_visible_folder
from clawmark.workspace.watching import inotify

OUT_OF_WATCHES = (errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOMEM)

Wanted = Callable[[str], bool]


class Target(NamedTuple):
    """A folder to keep an eye on, which need not be there yet."""

    folder: str
    is_wanted: Wanted
    """Which names of files in it matter."""
    deep: bool
    """Whether the visible folders below it matter as well."""
    awaited: frozenset[str] = frozenset()
    """Names in it that decide which folders are targets: when one changes, everything is set up
    again.
    """


class _Folder(NamedTuple):
    """One folder the system watches for us."""

    path: str
    device: int
    depth: int
    wanted: tuple[Wanted, ...]
    deep: bool
    is_top: bool
    awaited: frozenset[str]
    """Names that are on the way to a target that is not there; when one comes, everything is set up
    anew.
    """


class WatchedFolders:
    """The watches of one inotify instance; `OSError` when the system has none left."""

    def __init__(self, targets: Sequence[Target], most: int | None = None) -> None:
        self._inotify = inotify.Inotify(most)
        self._folders: dict[int, _Folder] = {}
        try:
            self._set_up(targets)
        except OSError:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._folders)

    @property
    def descriptor(self) -> int:
        """Becomes readable when something happened."""
        return self._inotify.descriptor

    def read(self) -> list[str] | None:
        """The paths that changed since the last call; None when everything has to be set up anew
        and looked at.
        """
        changed: list[str] = []
        for event in self._inotify.read():
            path = self._take(event)
            if path is None:
                return None
            if path:
                changed.append(path)
        return changed

    def close(self) -> None:
        self._inotify.close()

    # --- setting up ----------------------------------------------------------------------------------------------

    def _set_up(self, targets: Sequence[Target]) -> None:
        for target in targets:
            self._watch_target(target)
        folders = {target.folder for target in targets}
        for above, name in map(os.path.split, folders):
            if (
                above in folders
            ):  # a deleted folder reports itself only when nobody has it open any more
                self._await(above, name)

    def _watch_target(self, target: Target) -> None:
        """Watch a folder, or the nearest one above it that is there until it comes."""
        while True:
            device = _device_of(target.folder)
            if device is not None:
                self._enter(
                    _Folder(
                        target.folder,
                        device,
                        0,
                        (target.is_wanted,),
                        target.deep,
                        True,
                        target.awaited,
                    )
                )
                return
            above, name = os.path.split(target.folder)
            while (device := _device_of(above)) is None and above != os.path.dirname(above):
                above, name = os.path.split(above)
            if device is None:
                return
            self._await(above, name)
            # It may have come between the look and the watch.
            if not os.path.lexists(os.path.join(above, name)):
                return
            if _device_of(os.path.join(above, name)) is None:  # a file stands in its place
                return

    def _await(self, folder: str, name: str) -> None:
        """Set everything up anew when this name comes to a folder or leaves it."""
        device = _device_of(folder)
        if device is not None:
            self._add(_Folder(folder, device, 0, (), False, True, frozenset((name,))))

    def _enter(self, top: _Folder) -> None:
        """Watch a folder, and those below it where they matter: first the watch, then the list, so
        that none is missed.
        """
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            if self._add(folder) and folder.deep:
                waiting.extend(self._below(folder))

    def _below(self, folder: _Folder) -> Iterator[_Folder]:
        if folder.depth + 1 >= MAX_COMPONENTS:
            return
        try:
            with os.scandir(folder.path) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError as error:
            if error.errno in OUT_OF_WATCHES:
                raise
            return
        for name in names:
            path = os.path.join(folder.path, name)
            if is_visible_folder(name) and is_utf8(name) and _device_of(path) == folder.device:
                yield folder._replace(
                    path=path, depth=folder.depth + 1, is_top=False, awaited=frozenset()
                )

    def _add(self, folder: _Folder) -> bool:
        """Have one folder watched; False when it is gone or closed to us, which its own folder will
        tell about.
        """
        try:
            number = self._inotify.add(folder.path)
        except OSError as error:
            if error.errno in OUT_OF_WATCHES:
                raise
            return False
        known = self._folders.get(number)
        if known is not None:  # a folder that is wanted for two reasons
            folder = folder._replace(
                depth=min(known.depth, folder.depth),
                wanted=tuple(dict.fromkeys((*known.wanted, *folder.wanted))),
                deep=known.deep or folder.deep,
                is_top=known.is_top or folder.is_top,
                awaited=known.awaited | folder.awaited,
            )
        self._folders[number] = folder
        return True

    # --- events --------------------------------------------------------------------------------------------------

    def _take(self, event: inotify.Event) -> str | None:
        """The path that changed, an empty one when nothing of interest did, None when all has to be
        set up anew.
        """
        if event.mask & inotify.OVERFLOW:
            return None
        if event.mask & inotify.IGNORED:
            self._folders.pop(event.watch, None)
            return ""
        folder = self._folders.get(event.watch)
        if folder is None:
            return ""
        if event.mask & (inotify.DELETE_SELF | inotify.MOVE_SELF):
            return None if folder.is_top else ""
        if event.name in folder.awaited:
            return None
        path = os.path.join(folder.path, event.name)
        if event.mask & inotify.IS_FOLDER:
            return path if folder.deep and self._take_folder(event, folder, path) else ""
        return path if any(is_wanted(event.name) for is_wanted in folder.wanted) else ""

    def _take_folder(self, event: inotify.Event, above: _Folder, path: str) -> bool:
        """Follow a folder that came or went; False for one that does not matter."""
        if not (event.name and is_visible_folder(event.name) and is_utf8(event.name)):
            return False
        if event.mask & (inotify.DELETE | inotify.MOVED_FROM):
            self._forget(path)
        elif _device_of(path) == above.device and above.depth + 1 < MAX_COMPONENTS:
            self._enter(
                above._replace(path=path, depth=above.depth + 1, is_top=False, awaited=frozenset())
            )
        return True

    def _forget(self, path: str) -> None:
        """Let go of a folder that was moved away or deleted, and of all below it."""
        gone = [number for number, folder in self._folders.items() if is_below(folder.path, path)]
        for number in gone:
            del self._folders[number]
            self._inotify.remove(number)


def _device_of(path: str) -> int | None:
    """The device of a folder that is no link; None for anything else."""
    try:
        info = os.lstat(path)
    except OSError:
        return None
    return info.st_dev if stat.S_ISDIR(info.st_mode) else None
