"""Scan the workspace: list its memory files with their states, and what was skipped.

Files are not opened and paths are not resolved: each folder is listed through its own descriptor,
which is fast and cannot be misled by a link. A folder that cannot be listed is a `ScanFailure`, so
that the files below it are not taken for deleted. A `Scan` is sorted by path; reports about
configured paths come first, because only the beginning of a long list is shown.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Sequence
from operator import itemgetter

from clawmark.model.errors import PathDenied, WorkspaceError
from clawmark.model.values import FileState, Scan, ScanFailure, Skipped, is_in_workspace
from clawmark.workspace.guard import (
    MAX_COMPONENTS,
    MAX_FILE_BYTES,
    Folder,
    changed_ns,
    file_state,
    folder_beneath,
    is_utf8,
    kind_of,
    open_root,
    reason_of,
    shown,
    split_relative,
)
from clawmark.workspace.places import (
    MARKDOWN,
    ROOT_FILES,
    Extra,
    is_hidden,
    is_leftover,
    is_markdown,
    is_temporary,
    is_visible_folder,
)

_LINK = "a link, and links are never followed"
_NEARLY_MARKDOWN = (".markdown", ".mdx", ".txt")
_TUPLE = tuple.__new__
"""Skips the constructor of a named tuple, which would take a tenth of the scan of 10,000 files."""


class _Found:
    """What the scan has found so far."""

    __slots__ = (
        "configured",
        "failures",
        "files",
        "media_of",
        "named",
        "roots",
        "skipped",
        "temporary",
        "workspace_id",
    )

    def __init__(self) -> None:
        self.files: list[FileState] = []
        self.skipped: list[Skipped] = []
        self.failures: list[ScanFailure] = []
        self.roots: list[tuple[str, int, int]] = []
        self.temporary: list[str] = []
        self.workspace_id = (-1, -1)
        self.configured: frozenset[str] = frozenset()
        """Extra paths that could not be used."""
        self.media_of: Extra | None = None
        """The extra path that is being listed, if its images and audio files are memory."""
        self.named: frozenset[str] = frozenset()
        """Folders that a walk does not enter: extra paths inside the workspace, which are walked on
        their own, and `memory` in a source that is the workspace itself."""

    def skip(self, path: str, reason: str) -> None:
        self.skipped.append(Skipped(path if is_utf8(path) else shown(path), reason))

    def fail(self, path: str, reason: str) -> None:
        self.failures.append(ScanFailure(path, reason))

    def enter(self, folder: Folder, path: str) -> None:
        self.roots.append((path, folder.device, folder.inode))


def scan_workspace(
    workspace: str,
    extras: Sequence[Extra],
    reported: Sequence[Skipped | ScanFailure] = (),
    copies: str = "",
) -> Scan:
    """Scan everything but the folder of `copies`; `reported` are extra paths that could not be
    used."""
    taken_ns = time.time_ns()
    found = _Found()
    found.failures.extend(item for item in reported if isinstance(item, ScanFailure))
    found.skipped.extend(item for item in reported if isinstance(item, Skipped))
    found.configured = frozenset(item.path for item in reported)
    found.named = frozenset(
        f"{extra.prefix}memory" if extra.name else extra.prefix
        for extra in extras
        if not extra.folder and not (extra.within if extra.name else extra.patterns)
    )
    if copies:
        extras = [extra for extra in extras if extra.folder or not _is_in(extra.inside, copies)]
        found.named |= {f"{extra.lead}{copies}" for extra in extras if not extra.inside}
    try:
        root = open_root(workspace)
    except OSError as error:
        found.fail("", f"{reason_of(error)} ({shown(workspace)})")
        return _finished(found, taken_ns)
    with root:
        found.enter(root, "")
        found.workspace_id = (root.device, root.inode)
        _scan_own(root, found)
        for extra in extras:
            if not extra.folder:
                _scan_extra(root, extra, found)
    for extra in extras:
        if extra.folder:
            _scan_outside(extra, found)
    return _finished(found, taken_ns)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _scan_own(root: Folder, found: _Found) -> None:
    seen: tuple[int, int] | None = None
    for name in ROOT_FILES:
        info = _scan_file(root, name, name, found, seen)
        seen = seen or info
    try:
        memory = root.child("memory")
    except FileNotFoundError:
        return
    except OSError as error:
        _no_folder(root, "memory", "memory", error, found)
        return
    with memory:
        found.enter(memory, "memory")
        _walk(memory, "memory/", memory.device, found, 1, "memory/")


def _scan_file(
    folder: Folder, name: str, path: str, found: _Found, same_as: tuple[int, int] | None = None
) -> tuple[int, int] | None:
    """Look at one file by name. If the file system ignores case, `same_as` is the file already seen
    under its other name."""
    try:
        info = folder.lstat(name)
    except FileNotFoundError:
        return None
    except OSError as error:
        found.fail(path, reason_of(error))
        return None
    if (info.st_dev, info.st_ino) == same_as and info.st_nlink == 1:
        return None
    if not stat.S_ISREG(info.st_mode):
        found.skip(
            path, _LINK if stat.S_ISLNK(info.st_mode) else f"{kind_of(info.st_mode)}, not a file"
        )
    elif info.st_size > (limit := _limit(name, found)):
        found.skip(path, _too_large(info.st_size, limit))
    else:
        found.files.append(file_state(path, "memory", info))
    return info.st_dev, info.st_ino


def _no_folder(parent: Folder, name: str, path: str, error: OSError, found: _Found) -> None:
    """Record why a folder was not entered. A link or a file in its place counts as a failure: the
    files in the folder may come back."""
    try:
        mode = parent.lstat(name).st_mode
    except FileNotFoundError:
        return
    except OSError as worse:
        found.fail(path, reason_of(worse))
        return
    if stat.S_ISLNK(mode):
        real = os.path.realpath(f"{parent.path}/{name}")
        found.fail(
            path,
            f"{_LINK}; to index what it leads to, add {shown(real)} to memorySearch.extraPaths",
        )
    elif not stat.S_ISDIR(mode):
        found.fail(path, f"{'a file' if stat.S_ISREG(mode) else kind_of(mode)}, not a folder")
    else:
        found.fail(path, reason_of(error))


def _scan_extra(root: Folder, extra: Extra, found: _Found) -> None:
    """Scan an extra path inside the workspace, opened from its root so that no link is followed."""
    parts = split_relative(extra.inside) if extra.inside else []
    folders, names = (parts[:-1], parts[-1:]) if extra.file else (parts, [])
    try:
        with folder_beneath(root, folders, extra.prefix, len(folders)) as folder:
            if names:
                _scan_extra_file(folder, names[0], extra, found)
            else:
                found.enter(folder, extra.prefix)
                _walk_extra(folder, extra.lead, extra, found, len(parts))
    except FileNotFoundError:
        found.skip(extra.prefix, "extra path not found")
    except (PathDenied, WorkspaceError) as error:
        found.fail(extra.prefix, error.message)


def _scan_outside(extra: Extra, found: _Found) -> None:
    try:
        folder = open_root(extra.folder)
    except FileNotFoundError:
        found.skip(extra.prefix, "extra path not found")
        return
    except OSError as error:
        found.fail(extra.prefix, reason_of(error))
        return
    with folder:
        if extra.file:
            _scan_extra_file(folder, extra.file, extra, found)
        else:
            found.enter(folder, extra.prefix)
            _walk_extra(folder, extra.lead, extra, found, 0)


def _scan_extra_file(folder: Folder, name: str, extra: Extra, found: _Found) -> None:
    found.media_of = extra if extra.media is not None else None
    _scan_file(folder, name, extra.prefix, found)
    found.media_of = None


def _walk_extra(folder: Folder, prefix: str, extra: Extra, found: _Found, depth: int) -> None:
    """List the files of an extra path that match its patterns."""
    before = len(found.files)
    found.media_of = extra if extra.media is not None else None
    _walk(folder, prefix, folder.device, found, depth, "")
    found.media_of = None
    if extra.patterns or extra.name:
        found.files[before:] = [
            state for state in found.files[before:] if extra.covers(state.path[len(prefix) :])
        ]


def _walk(folder: Folder, prefix: str, device: int, found: _Found, depth: int, own: str) -> None:
    """List one folder and those below it; with `own`, notes in other formats are reported."""
    below: list[str] = []
    add = found.files.append
    try:
        with folder.listing() as entries:
            for entry in entries:
                name = entry.name
                if name[-3:] in MARKDOWN and entry.is_file(follow_symlinks=False):
                    if (name[0] != "." or not is_leftover(name)) and (
                        name.isascii() or is_utf8(name)
                    ):
                        info = entry.stat(follow_symlinks=False)
                        size = info.st_size
                        if size <= MAX_FILE_BYTES:
                            state = (
                                prefix + name,
                                "memory",
                                size,
                                changed_ns(info),
                                info.st_ino,
                                info.st_dev,
                            )
                            add(_TUPLE(FileState, state))
                            continue
                    _skip_file(entry, prefix + name, found)
                elif entry.is_dir(follow_symlinks=False):
                    below.append(name)
                else:
                    _skip_other(entry, prefix, own, found)
    except FileNotFoundError:
        # The folder or a file was deleted during the listing: this scan must not delete anything.
        found.fail(prefix.rstrip("/"), "changed while it was listed")
    except OSError as error:
        found.fail(prefix.rstrip("/"), reason_of(error))
    for name in below:
        _enter(folder, name, prefix + name, device, found, depth + 1, own)


def _enter(
    folder: Folder, name: str, path: str, device: int, found: _Found, depth: int, own: str
) -> None:
    if path in found.named:
        return
    if not is_visible_folder(name):
        found.skip(path, "a hidden folder" if is_hidden(name) else "a folder of installed packages")
        return
    if not is_utf8(name):
        found.skip(path, "the folder's name is not valid UTF-8")
        return
    if depth >= MAX_COMPONENTS:
        found.skip(path, f"more than {MAX_COMPONENTS} folders deep")
        return
    try:
        below = folder.child(name)
    except FileNotFoundError:
        return
    except OSError as error:
        _no_folder(folder, name, path, error, found)
        return
    with below:
        if below.device != device:
            found.skip(path, "on another device; to index it, add it to memorySearch.extraPaths")
        elif (below.device, below.inode) != found.workspace_id:  # inside an extra path
            _walk(below, path + "/", device, found, depth, own)


def _skip_file(entry: os.DirEntry[str], path: str, found: _Found) -> None:
    if is_leftover(entry.name):
        found.skip(path, "left by an editor or the system")
    elif not is_utf8(entry.name):
        found.skip(path, "the file's name is not valid UTF-8")
    else:
        found.skip(path, _too_large(entry.stat(follow_symlinks=False).st_size))


def _skip_other(entry: os.DirEntry[str], prefix: str, own: str, found: _Found) -> None:
    """Report what a user might miss: links, special files called .md, notes in other formats.

    Images and audio files are listed here where they are memory."""
    name = entry.name
    if entry.is_symlink():
        found.skip(prefix + name, _LINK)
    elif found.media_of is not None and _scan_media(entry, prefix + name, found.media_of, found):
        return
    elif is_markdown(name):
        found.skip(
            prefix + name, f"{kind_of(entry.stat(follow_symlinks=False).st_mode)}, not a file"
        )
    elif own and name.lower().endswith(_NEARLY_MARKDOWN) and not is_hidden(name):
        found.skip(prefix + name, "not a .md file; rename it to index it")
    elif own and is_temporary(name):
        found.temporary.append(prefix + name)


def _scan_media(entry: os.DirEntry[str], path: str, extra: Extra, found: _Found) -> bool:
    """List an image or audio file, or report why not; return False for any other file."""
    name, media = entry.name, extra.media
    if media is None or is_leftover(name) or not extra.covers(path[len(extra.lead) :]):
        return False
    modality = media.modality_of(name)
    if not modality and not media.other_modality(name):
        return False
    info = entry.stat(follow_symlinks=False)
    if not stat.S_ISREG(info.st_mode):
        found.skip(path, f"{kind_of(info.st_mode)}, not a file")
    elif not is_utf8(name):
        found.skip(path, "the file's name is not valid UTF-8")
    elif not modality:
        found.skip(path, "a type that the model does not take: it takes PNG, JPEG, MP3 and WAV")
    elif info.st_size > media.max_file_bytes:
        found.skip(path, _too_large(info.st_size, media.max_file_bytes))
    else:
        found.files.append(file_state(path, "memory", info))
    return True


def _limit(name: str, found: _Found) -> int:
    """Return how large a file may be."""
    media = found.media_of.media if found.media_of is not None else None
    return MAX_FILE_BYTES if media is None or is_markdown(name) else media.max_file_bytes


def _too_large(size: int, limit: int = MAX_FILE_BYTES) -> str:
    return f"{size:,} bytes; the limit is {limit:,}"


def _finished(found: _Found, taken_ns: int) -> Scan:
    files = found.files
    if len(set(map(itemgetter(4), files))) != len(files):  # two have the same inode number
        files = _each_inode_once(files, found)
    files.sort(key=itemgetter(0))  # by path: the order of code points is the order of UTF-8 bytes
    # One report per path, the first one: overlapping extra paths find the same link twice.
    skipped = {skip.path: skip for skip in reversed(found.skipped)}
    failures = {failure.path: failure for failure in reversed(found.failures)}
    return Scan(
        files=tuple(files),
        skipped=tuple(
            skipped[path]
            for path in sorted(skipped, key=lambda path: (path not in found.configured, path))
        ),
        failures=tuple(failures[path] for path in sorted(failures)),
        taken_ns=taken_ns,
        roots=tuple(found.roots),
        temporary=tuple(found.temporary),
    )


def _each_inode_once(files: list[FileState], found: _Found) -> list[FileState]:
    """Keep one file per inode: MEMORY.md, then the workspace's own files, then by path."""
    kept: dict[tuple[int, int], FileState] = {}
    for state in sorted(files, key=lambda state: (not is_in_workspace(state.path), state.path)):
        first = kept.setdefault((state.device, state.inode), state)
        if first.path != state.path:
            found.skip(state.path, f"same file as {shown(first.path)}")
    return list(kept.values())
