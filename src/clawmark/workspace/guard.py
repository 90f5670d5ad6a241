"""Open files so that no path, link or race leads outside a folder.

Each component of a path is opened on its own, relative to the descriptor of the one before it, and
never through a link. What was checked is thus what is read: no time passes between check and use.
`places.py` decides which paths count as memory.

A folder on another device below the root is refused, so that a scan does not wander onto a network
disk by accident. The folders that the user named (`memory` itself, an extra path) are the `anchor`
and may be mount points. A single file on another device is accepted, because overlay file systems
report other device numbers for files than for their folder.

Where the platform cannot open relative to a descriptor (Windows), the same calls compare real paths
instead. That is open to races, and `containment()` says so.
"""

# pathlib stays out: it adds 4 ms to every cold search, and has no calls relative to a descriptor.

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from operator import attrgetter

from clawmark.model.errors import PathDenied, WorkspaceError, advice
from clawmark.model.values import FileState, SourceName

MAX_FILE_BYTES = 64 * 1024 * 1024
"""Larger files are not read: they were not written by hand, and would fill the memory."""

MAX_COMPONENTS = 64

_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW | _CLOEXEC
_SAFE_FLAGS = _NOFOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | _CLOEXEC
_FILE_FLAGS = os.O_RDONLY | _SAFE_FLAGS | getattr(os, "O_BINARY", 0)
_HAS_DESCRIPTORS = bool(
    _NOFOLLOW
    and hasattr(os, "O_DIRECTORY")
    and {os.open, os.stat} <= os.supports_dir_fd
    and os.scandir in os.supports_fd
)

changed_ns = attrgetter("st_mtime_ns" if os.name == "nt" else "st_ctime_ns")
"""When a file last changed in any way. Programs can set a file's mtime, but not its ctime."""

EXTRA_PATHS_HINT = "To allow its folder, add it to memorySearch.extraPaths."


def containment() -> str:
    """Return how paths are kept inside a folder: `descriptor` (race-free) or `best-effort`."""
    return "descriptor" if _HAS_DESCRIPTORS else "best-effort"


class Folder:
    """An opened folder; its calls reach only its direct children and never follow a link."""

    __slots__ = ("device", "fd", "inode", "path")

    def __init__(self, path: str, fd: int | None, device: int, inode: int) -> None:
        self.path = path
        self.fd = fd
        """None where the platform cannot open folders; `path` is used then."""
        self.device = device
        self.inode = inode

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None

    def _name(self, name: str) -> str:
        """What to pass to a system call together with `dir_fd=self.fd`."""
        return name if self.fd is not None else os.path.join(self.path, name)

    def child(self, name: str) -> Folder:
        """Open the folder of that name below this one; a link or a file is an OSError."""
        full = self.path + "/" + name
        if self.fd is None:
            return _plain_folder(full)
        return _opened(full, os.open(name, _FOLDER_FLAGS, dir_fd=self.fd))

    def open(self, name: str, flags: int = _FILE_FLAGS, mode: int = 0o666) -> int:
        """Open a child and return its descriptor; a link is an OSError, a pipe does not block."""
        if not _NOFOLLOW and os.path.islink(self._name(name)):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        flags |= _SAFE_FLAGS | getattr(os, "O_BINARY", 0)
        return os.open(self._name(name), flags, mode, dir_fd=self.fd)

    def lstat(self, name: str) -> os.stat_result:
        return os.stat(self._name(name), dir_fd=self.fd, follow_symlinks=False)

    def holds(self, name: str, info: os.stat_result) -> bool:
        """Whether the child of that name is this file. The file has to be open: its inode number
        cannot be reused then."""
        try:
            return os.path.samestat(self.lstat(name), info)
        except FileNotFoundError:
            return False

    def exists(self, name: str) -> bool:
        """Whether there is a child of that name, of any kind."""
        try:
            self.lstat(name)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def listing(self) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        return os.scandir(self.path if self.fd is None else self.fd)

    def make_folder(self, name: str) -> None:
        os.mkdir(self._name(name), dir_fd=self.fd)

    def rename(self, old: str, new: str, target: Folder | None = None) -> None:
        """Rename a child in one step, replacing what has the new name; into another folder if
        `target` is given."""
        into = target or self
        os.replace(self._name(old), into._name(new), src_dir_fd=self.fd, dst_dir_fd=into.fd)

    def unlink(self, name: str) -> None:
        os.unlink(self._name(name), dir_fd=self.fd)

    def remove_folder(self, name: str) -> None:
        os.rmdir(self._name(name), dir_fd=self.fd)

    def sync(self) -> None:
        """Make created, renamed and deleted names durable; Windows needs no such call."""
        if self.fd is not None:
            os.fsync(self.fd)


def open_root(path: str, *, descriptors: bool = _HAS_DESCRIPTORS) -> Folder:
    """Open a root by its real path; OSError if it is absent, a link, or not a folder."""
    return _opened(path, os.open(path, _FOLDER_FLAGS)) if descriptors else _plain_folder(path)


def _opened(path: str, fd: int) -> Folder:
    info = os.fstat(fd)
    return Folder(path=path, fd=fd, device=info.st_dev, inode=info.st_ino)


def _plain_folder(path: str) -> Folder:
    info = os.lstat(path)
    if not stat.S_ISDIR(info.st_mode) or os.path.normcase(
        os.path.realpath(path)
    ) != os.path.normcase(path):
        raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    return Folder(path=path, fd=None, device=info.st_dev, inode=info.st_ino)


def open_beneath(root: Folder, relative: str, shown_as: str = "", anchor: int = 0) -> int:
    """Open the regular file at `relative` below `root` and return its descriptor.

    `shown_as` names it in errors, if its citation differs from `relative`; the first `anchor`
    components may be on another device. Raises FileNotFoundError if there is no such file."""
    parts = split_relative(relative)
    with folder_beneath(root, parts[:-1], shown_as or relative, anchor) as folder:
        return open_regular(folder, parts[-1], shown_as or relative)


@contextmanager
def folder_beneath(
    root: Folder, parts: list[str], shown_as: str, anchor: int = 0
) -> Iterator[Folder]:
    """Open the folder that `parts` lead to, component by component."""
    here = root
    try:
        for depth, part in enumerate(parts):
            below = _child(here, part, None if depth < anchor else here.device, shown_as)
            if here is not root:
                here.close()
            here = below
        yield here
    finally:
        if here is not root:
            here.close()


def _child(folder: Folder, name: str, device: int | None, shown_as: str) -> Folder:
    try:
        below = folder.child(name)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _refusal(error, folder, name, shown_as) from error
    if device is not None and below.device != device:
        below.close()
        raise denied(shown_as, "is in a folder on another device", "outside", EXTRA_PATHS_HINT)
    return below


def open_regular(
    folder: Folder,
    name: str,
    shown_as: str,
    flags: int = _FILE_FLAGS,
    limit: int | None = MAX_FILE_BYTES,
) -> int:
    """Open a regular file of acceptable size in `folder` and return its descriptor."""
    try:
        fd = folder.open(name, flags)
    except FileNotFoundError:
        raise
    except OSError as error:
        if flags & os.O_RDWR and error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise  # the caller reports that the file cannot be written
        raise _refusal(error, folder, name, shown_as) from error
    info = os.fstat(fd)
    if stat.S_ISREG(info.st_mode) and (limit is None or info.st_size <= limit):
        return fd
    os.close(fd)
    if not stat.S_ISREG(info.st_mode):
        raise not_a_file(shown_as, info.st_mode)
    what = f"has {info.st_size:,} bytes; the limit for a memory file is {limit:,}"
    raise denied(shown_as, what, "too-large", "Split it into smaller files.")


def denied(path: str, what: str, rule: str, hint: str = "") -> PathDenied:
    """Return the error for a path that may not be used: `<path> <what>.`"""
    return PathDenied(f"{shown(path)} {what}.", path=path, rule=rule, hint=hint)


def _refusal(error: OSError, folder: Folder, name: str, shown_as: str) -> Exception:
    """Return what a failed open means: not allowed, deleted since, or a failure of the system."""
    if error.errno == errno.ENAMETOOLONG:
        return denied(shown_as, "has a name too long for a file", "bad-name")
    if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EISDIR, errno.EMLINK):
        return unreadable(shown_as, error)
    try:
        return not_a_file(shown_as, folder.lstat(name).st_mode, name)
    except FileNotFoundError as vanished:
        return vanished
    except OSError as failure:
        return unreadable(shown_as, failure)


def not_a_file(shown_as: str, mode: int, component: str = "") -> PathDenied:
    """Return the error for something that exists but is not a regular file."""
    if stat.S_ISLNK(mode):
        through = shown_as.rpartition("/")[2] != component and component
        what = f"goes through {shown(component)}, a link" if through else "is a link"
        hint = "To read what a link leads to, add its real location to memorySearch.extraPaths."
        return denied(shown_as, f"{what}, and links are never followed", "link", hint)
    if stat.S_ISREG(mode):
        return denied(shown_as, f"treats the file {shown(component)} as a folder", "not-a-file")
    return denied(shown_as, f"is {kind_of(mode)}, not a file", "not-a-file")


def kind_of(mode: int) -> str:
    """Return the kind of file that a mode stands for, with its article."""
    kinds = (
        (stat.S_ISLNK, "a link"),
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
    )
    return next((word for is_kind, word in kinds if is_kind(mode)), "a device")


def unreadable(shown_as: str, error: OSError) -> WorkspaceError:
    """Return the error for a file or folder that the system does not open or read."""
    return WorkspaceError(
        f"{shown(shown_as)} cannot be read: {reason_of(error)}.",
        hint=advice(error, "Check its permissions and the disk it is on."),
    )


def reason_of(error: OSError) -> str:
    """Return the system's message for an error, in lower case to fit into a sentence."""
    words = error.strerror or type(error).__name__
    return words[:1].lower() + words[1:]


def split_relative(relative: str) -> list[str]:
    """Split a relative path into its components; PathDenied if it is absolute, empty or dotted."""
    check_text(relative)
    parts = relative.split("/")
    if parts[0] == "" or (os.name == "nt" and ("\\" in relative or ":" in relative)):
        raise denied(relative, "is not a relative path", "outside", EXTRA_PATHS_HINT)
    if ".." in parts:
        depth = 0
        for part in parts:
            depth += -1 if part == ".." else part not in ("", ".")
            if depth < 0:
                raise denied(relative, "is outside the workspace", "outside", EXTRA_PATHS_HINT)
        hint = "Name the file by its own path."
        raise denied(relative, 'steps back with ".."', "bad-name", hint)
    if "" in parts or "." in parts:
        raise denied(relative, "has an empty or dotted component", "bad-name")
    if len(parts) > MAX_COMPONENTS:
        what = f"is {len(parts)} folders deep; the limit is {MAX_COMPONENTS}"
        raise denied(relative, what, "bad-name")
    return parts


def check_text(path: str) -> None:
    """Raise PathDenied for a text that cannot be a path at all."""
    if not path.strip():
        hint = "Try memory/2026-02-24.md."
        raise PathDenied("The path is empty.", path=path, rule="bad-name", hint=hint)
    if "\0" in path:
        raise denied(path, "contains a NUL character", "bad-name")
    if not is_utf8(path):
        raise denied(path, "is not valid Unicode text", "bad-name")


def is_utf8(name: str) -> bool:
    """Whether a name is valid UTF-8; Python decodes other bytes as lone surrogates."""
    if name.isascii():
        return True
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(path: str) -> str:
    """Return a path for one line of a message: odd characters escaped, a long path shortened."""
    if not path.isprintable():
        path = "".join(map(_shown_character, path[:1000]))
    return path if len(path) <= 200 else f"{path[:120]}…{path[-60:]}"


def _shown_character(character: str) -> str:
    if character.isprintable():
        return character
    if "\udc80" <= character <= "\udcff":  # a byte that was not UTF-8
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()


def file_state(path: str, source: SourceName, info: os.stat_result) -> FileState:
    """Return the state of a file as a scan records it."""
    return FileState(
        path=path,
        source=source,
        size=info.st_size,
        mtime_ns=changed_ns(info),
        inode=info.st_ino,
        device=info.st_dev,
    )
