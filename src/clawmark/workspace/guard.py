"""Opening files so that no path, link or race leads outside a folder.

In: an opened folder and a relative path. Out: a descriptor of a regular file below that folder, or
`PathDenied`. Each component is opened on its own, relative to the descriptor of the one before it,
and never through a link, so what was checked is what is read: there is no moment between a check
and a use. Which paths count as memory is decided in `places.py`.

A folder that is mounted somewhere below is refused, so that nobody wanders onto a network disk by
accident; the folders that were named (`memory` itself, an extra path) are the `anchor` and may be
mounts. A single file on another device is not refused: overlay file systems report other device
numbers for files than for their folder.

Where the platform cannot open relative to a descriptor (Windows), the same calls compare real paths
instead; that is open to races, and `containment()` says so."""

# pathlib stays out: it costs 4 ms on the path of every cold search, and has no calls relative to a
# descriptor.

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from operator import attrgetter

from clawmark.model.errors import PathDenied, WorkspaceError, advice

MAX_FILE_BYTES = 64 * 1024 * 1024
"""A memory file larger than this is left alone: nobody wrote it by hand, and reading it would
follow its size.
"""

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
"""When a file last changed in any way.

Whoever edits a file may put its mtime back; its ctime nobody can.
"""

EXTRA_PATHS_HINT = "To allow its folder, add it to memorySearch.extraPaths."


def containment() -> str:
    """How paths are kept inside a folder here: `descriptor` (no race can lead out) or
    `best-effort`.
    """
    return "descriptor" if _HAS_DESCRIPTORS else "best-effort"


class Folder:
    """An opened folder; its calls reach only its direct children and never follow a link."""

    __slots__ = ("device", "fd", "inode", "path")

    def __init__(self, path: str, fd: int | None, device: int, inode: int) -> None:
        self.path = path
        self.fd = fd
        """None where the platform has no descriptors of folders; `path` is used then."""
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

    def child(self, name: str) -> Folder:
        """The folder of that name below this one; a link or a file is an OSError."""
        full = self.path + "/" + name
        if self.fd is None:
            return _plain_folder(full)
        return _opened(full, os.open(name, _FOLDER_FLAGS, dir_fd=self.fd))

    def open(self, name: str, flags: int = _FILE_FLAGS, mode: int = 0o666) -> int:
        """A descriptor of the child; a link is an OSError, a pipe does not block."""
        flags |= _SAFE_FLAGS
        if self.fd is None:
            full = os.path.join(self.path, name)
            if os.path.islink(full):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
            return os.open(full, flags | getattr(os, "O_BINARY", 0), mode)
        return os.open(name, flags, mode, dir_fd=self.fd)

    def lstat(self, name: str) -> os.stat_result:
        if self.fd is None:
            return os.lstat(os.path.join(self.path, name))
        return os.stat(name, dir_fd=self.fd, follow_symlinks=False)

    def holds(self, name: str, info: os.stat_result) -> bool:
        """Whether the child of that name is this file, which has to be open: no other file can get
        its inode number then.
        """
        try:
            return os.path.samestat(self.lstat(name), info)
        except FileNotFoundError:
            return False

    def listing(self) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        return os.scandir(self.path if self.fd is None else self.fd)

    def make_folder(self, name: str) -> None:
        if self.fd is None:
            os.mkdir(os.path.join(self.path, name))
        else:
            os.mkdir(name, dir_fd=self.fd)

    def rename(self, old: str, new: str) -> None:
        """Put `old` in the place of `new` in one step."""
        if self.fd is None:
            os.replace(os.path.join(self.path, old), os.path.join(self.path, new))
        else:
            os.replace(old, new, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def unlink(self, name: str) -> None:
        if self.fd is None:
            os.unlink(os.path.join(self.path, name))
        else:
            os.unlink(name, dir_fd=self.fd)

    def sync(self) -> None:
        """Make created, renamed and deleted names durable; Windows has no such call and needs none."""
        if self.fd is not None:
            os.fsync(self.fd)


def open_root(path: str, *, descriptors: bool = _HAS_DESCRIPTORS) -> Folder:
    """Open a root by its real path; raises OSError when it is absent, a link, or no folder."""
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
    """A descriptor of the regular file at `relative` below `root`; FileNotFoundError when there is
    none.

    `shown_as` is what errors call it when its citation differs from its place below this root; the
    first `anchor` components may lie on another device."""
    parts = split_relative(relative)
    with folder_beneath(root, parts[:-1], shown_as or relative, anchor) as folder:
        return open_regular(folder, parts[-1], shown_as or relative)


@contextmanager
def folder_beneath(
    root: Folder, parts: list[str], shown_as: str, anchor: int = 0
) -> Iterator[Folder]:
    """The folder that `parts` lead to, opened component by component; `shown_as` names the path in
    errors.
    """
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
        raise PathDenied(
            f"{shown(shown_as)} is in a folder on another device.",
            path=shown_as,
            rule="outside",
            hint=EXTRA_PATHS_HINT,
        )
    return below


def open_regular(
    folder: Folder,
    name: str,
    shown_as: str,
    flags: int = _FILE_FLAGS,
    limit: int | None = MAX_FILE_BYTES,
) -> int:
    """A descriptor of a regular file of acceptable size that is a direct child of `folder`."""
    try:
        fd = folder.open(name, flags)
    except FileNotFoundError:
        raise
    except OSError as error:
        if flags & os.O_RDWR and error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise  # the writer says that it is about writing
        raise _refusal(error, folder, name, shown_as) from error
    info = os.fstat(fd)
    if stat.S_ISREG(info.st_mode) and (limit is None or info.st_size <= limit):
        return fd
    os.close(fd)
    if not stat.S_ISREG(info.st_mode):
        raise not_a_file(shown_as, info.st_mode)
    raise PathDenied(
        f"{shown(shown_as)} has {info.st_size:,} bytes; the limit for a memory file is {limit:,}.",
        path=shown_as,
        rule="too-large",
        hint="Split it into smaller files.",
    )


def _refusal(error: OSError, folder: Folder, name: str, shown_as: str) -> Exception:
    """What a failed open means: not allowed, gone in the meantime, or a trouble of the machine."""
    if error.errno == errno.ENAMETOOLONG:
        return PathDenied(
            f"{shown(shown_as)} has a name too long for a file.", path=shown_as, rule="bad-name"
        )
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EISDIR, errno.EMLINK):
        try:
            mode = folder.lstat(name).st_mode
        except OSError as vanished:
            return (
                vanished
                if isinstance(vanished, FileNotFoundError)
                else unreadable(shown_as, vanished)
            )
        return not_a_file(shown_as, mode, name)
    return unreadable(shown_as, error)


def not_a_file(shown_as: str, mode: int, component: str = "") -> PathDenied:
    """The refusal of something that is there and is not a regular file."""
    if stat.S_ISLNK(mode):
        through = shown_as.rpartition("/")[2] != component and component
        what = f"goes through {shown(component)}, a link" if through else "is a link"
        return PathDenied(
            f"{shown(shown_as)} {what}, and links are never followed.",
            path=shown_as,
            rule="link",
            hint="To read what a link leads to, add its real location to memorySearch.extraPaths.",
        )
    if stat.S_ISREG(mode):
        return PathDenied(
            f"{shown(shown_as)} treats the file {shown(component)} as a folder.",
            path=shown_as,
            rule="not-a-file",
        )
    return PathDenied(
        f"{shown(shown_as)} is {kind_of(mode)}, not a file.", path=shown_as, rule="not-a-file"
    )


def kind_of(mode: int) -> str:
    """What a mode stands for, as a person would say it."""
    kinds = (
        (stat.S_ISLNK, "a link"),
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
    )
    return next((word for is_kind, word in kinds if is_kind(mode)), "a device")


def unreadable(shown_as: str, error: OSError) -> WorkspaceError:
    """One sentence for a file or folder that the system would not open or read."""
    return WorkspaceError(
        f"{shown(shown_as)} cannot be read: {reason_of(error)}.",
        hint=advice(error, "Check its permissions and the disk it is on."),
    )


def reason_of(error: OSError) -> str:
    """The system's words for an error, without a capital letter, so that they fit into a sentence."""
    words = error.strerror or type(error).__name__
    return words[:1].lower() + words[1:]


def split_relative(relative: str) -> list[str]:
    """The components of a relative path, or PathDenied: nothing absolute, empty, dotted, or
    unspeakable passes.
    """
    check_text(relative)
    parts = relative.split("/")
    if parts[0] == "" or (os.name == "nt" and ("\\" in relative or ":" in relative)):
        raise PathDenied(
            f"{shown(relative)} is not a relative path.",
            path=relative,
            rule="outside",
            hint=EXTRA_PATHS_HINT,
        )
    if ".." in parts:
        raise _stepping_back(relative, parts)
    if "" in parts or "." in parts:
        raise PathDenied(
            f"{shown(relative)} has an empty or dotted component.", path=relative, rule="bad-name"
        )
    if len(parts) > MAX_COMPONENTS:
        raise PathDenied(
            f"{shown(relative)} is {len(parts)} folders deep; the limit is {MAX_COMPONENTS}.",
            path=relative,
            rule="bad-name",
        )
    return parts


def _stepping_back(relative: str, parts: list[str]) -> PathDenied:
    depth = 0
    for part in parts:
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            return PathDenied(
                f"{shown(relative)} is outside the workspace.",
                path=relative,
                rule="outside",
                hint=EXTRA_PATHS_HINT,
            )
    return PathDenied(
        f'{shown(relative)} steps back with "..".',
        path=relative,
        rule="bad-name",
        hint="Name the file by its own path.",
    )


def check_text(path: str) -> None:
    """Refuse what cannot be a path at all."""
    if not path.strip():
        raise PathDenied(
            "The path is empty.", path=path, rule="bad-name", hint="Try memory/2026-02-24.md."
        )
    if "\0" in path:
        raise PathDenied(f"{shown(path)} contains a NUL character.", path=path, rule="bad-name")
    if not is_utf8(path):
        raise PathDenied(f"{shown(path)} is not valid Unicode text.", path=path, rule="bad-name")


def is_utf8(name: str) -> bool:
    """False for a name with lone surrogates: that is how Python shows bytes that are not UTF-8."""
    if name.isascii():
        return True
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(path: str) -> str:
    """A path fit for one line of a message: odd characters escaped, very long ones cut in the
    middle.
    """
    if not path.isprintable():
        path = "".join(map(_shown_character, path[:1000]))
    return path if len(path) <= 200 else f"{path[:120]}…{path[-60:]}"


def _shown_character(character: str) -> str:
    if character.isprintable():
        return character
    if "\udc80" <= character <= "\udcff":  # a byte that was not UTF-8
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()
