"""Write memory files durably: what is acknowledged is on disk, whole, once.

An append takes the file's lock, writes once at the end, and syncs before it returns. A replace
compares the hash it is based on, writes a temporary file, syncs and renames it. A file with a
second (hard-linked) name is written by copy and rename, so that the other name never changes.
Editors do not use the lock: one that saves by rename during an append is noticed by the inode of
its file, and the entry is written again unless that file contains it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from clawmark.model.documents import Written
from clawmark.model.errors import WorkspaceError, WorkspaceReadOnly, WriteConflict, advice
from clawmark.workspace.guard import (
    MAX_FILE_BYTES,
    Folder,
    folder_beneath,
    open_regular,
    reason_of,
    shown,
    split_relative,
)
from clawmark.workspace.read import WIDE_MARKS, read_all
from clawmark.workspace.temporary import create_temporary, remove_temporary, sweep
from clawmark.workspace.versions import keep_version
from clawmark.workspace.write_lock import locked

MAX_ENTRY_BYTES = 1024 * 1024
"""The limit for an entry; larger texts are written with `replace`."""

ANCHOR = 1
"""Only `MEMORY.md` and files below `memory` are written, and `memory` may be a mount point."""

_OPEN_ATTEMPTS = 5
"""How often to open a file that appears and disappears."""

_EDITOR_TIMEOUT = 10.0
"""Seconds that an append follows a file which an editor keeps replacing."""


class Appended(NamedTuple):
    """What an append did."""

    written: Written
    before: int
    """The size of the file before; 0 if it did not exist."""
    after: int


def append(
    root: Folder,
    path: str,
    text: str,
    *,
    header: str = "",
    lock_dir: str | None = None,
    on_change: Callable[[bytes], None] | None = None,
) -> Appended:
    """Add lines to the end of a memory file; a new or empty file starts with `header`.

    `on_change` is called with the current bytes, under the lock, before the file is changed."""
    entry = _encoded(text.replace("\r\n", "\n"), path, MAX_ENTRY_BYTES)
    if not entry.strip():
        raise WorkspaceError(
            "There is nothing to write: the text is empty.", hint="Say what should be remembered."
        )
    if not entry.endswith(b"\n"):
        entry += b"\n"
    with translated(path), locked(root, path, lock_dir), folder_for(root, path) as (folder, name):
        return _append_entry(folder, name, path, entry, header.encode(), on_change)


def replace(
    root: Folder,
    path: str,
    text: str,
    base_hash: str,
    *,
    lock_dir: str | None = None,
    on_change: Callable[[bytes], None] | None = None,
) -> str:
    """Replace the text that has `base_hash` ("" if there is no file) and return the new hash.

    `on_change` is called as for `append`."""
    data = _encoded(text, path, MAX_FILE_BYTES)
    with translated(path), locked(root, path, lock_dir), folder_for(root, path) as (folder, name):
        current, info = _current(folder, name, path)
        current_hash = "" if info is None else _hash(current)
        if current_hash != base_hash:
            raise _conflict(path, base_hash, current_hash)
        if on_change is not None:
            on_change(current)
        keep_version(lock_dir, root.path, path, current)
        _put(folder, name, path, data, info, base_hash)
    return _hash(data)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _conflict(path: str, base_hash: str, current_hash: str) -> WriteConflict:
    happened = (
        "is already there"
        if not base_hash
        else "has changed since it was read"
        if current_hash
        else "is gone"
    )
    return WriteConflict(
        f"{shown(path)} {happened}.",
        path=path,
        base_hash=base_hash,
        current_hash=current_hash,
        hint="Read it again, make the change again, and write with the new hash.",
    )


def _encoded(text: str, path: str, limit: int) -> bytes:
    """Return the bytes to write; an error if they could not be read back as text."""
    if "\0" in text:
        raise WorkspaceError(
            f"The text for {shown(path)} contains a NUL character.", hint="Remove it and try again."
        )
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise WorkspaceError(
            f"The text for {shown(path)} contains half a character.",
            hint="Remove the lone surrogate and try again.",
        ) from error
    if len(data) > limit:
        raise WorkspaceError(
            f"The text for {shown(path)} has {len(data):,} bytes; the limit is {limit:,}.",
            hint="Split it.",
        )
    return data


# --- appending ---


class _Added(NamedTuple):
    """Where an entry was written."""

    line: int
    before: bytes
    """The text in front of it."""
    is_kept: bool
    """Whether the file still had its name after it was synced."""


def _append_entry(
    folder: Folder,
    name: str,
    path: str,
    entry: bytes,
    header: bytes,
    on_change: Callable[[bytes], None] | None,
) -> Appended:
    """Append under the lock, and make sure that the file of that name then contains the entry.

    An editor may rename its own version over the file at any moment. If it read the file before the
    entry was written, the entry is written again, to the new file; otherwise the new file already
    contains it."""
    deadline = time.monotonic() + _EDITOR_TIMEOUT
    added: _Added | None = None
    while True:
        fd, is_new = _open_for_append(folder, name, path)
        try:
            text = b"" if is_new else read_all(fd, path)
            if on_change is not None and added is None:
                _check_appendable(text, path, len(entry) + len(header))
                on_change(text)
            if added is not None and (line := _added_line(entry, added.before, text)):
                os.fsync(fd)  # the editor may not have done so
                folder.sync()
                added = _Added(line, added.before, folder.holds(name, os.fstat(fd)))
            else:
                added = _add(folder, name, path, fd, text, entry, header) or added
            if added is not None and added.is_kept:
                end = added.line + entry.count(b"\n") - 1
                size = os.fstat(fd).st_size
                return Appended(Written(path, added.line, end), len(added.before), size)
        finally:
            os.close(fd)
        if time.monotonic() > deadline:
            raise WorkspaceError(
                f"{shown(path)} kept being replaced while it was written.",
                hint="Close the program that rewrites it. Look whether the "
                "entry is there before you write it again.",
            )


def _add(
    folder: Folder, name: str, path: str, fd: int, before: bytes, entry: bytes, header: bytes
) -> _Added | None:
    """Write the entry at the end of an opened file and sync it; None if a hard-linked file changed
    at the same time."""
    _check_appendable(before, path, len(entry) + len(header))
    # An incomplete last line gets its line end.
    lead = header if not before else b"" if before.endswith(b"\n") else b"\n"
    info = os.fstat(fd)
    if info.st_nlink > 1:  # the other name must not change
        try:
            is_kept = _put(folder, name, path, before + lead + entry, info, "")
        except WriteConflict:
            return None
    else:
        began = _write_once(fd, lead + entry, len(before), path)
        os.fsync(fd)
        folder.sync()  # even if another program created the file: it may not have synced it
        is_kept = folder.holds(name, info)
        if began > len(before):  # a program without the lock appended in between
            os.lseek(fd, 0, os.SEEK_SET)
            before = read_all(fd, path)[:began]
    return _Added(before.count(b"\n") + lead.count(b"\n") + 1, before, is_kept)


def _added_line(entry: bytes, before: bytes, now: bytes) -> int:
    """Return the line of the last copy of the entry in `now`, or 0 if `before` has as many copies.

    Trailing spaces and line ends are ignored, because editors trim and convert them."""
    wanted = _trimmed_lines(entry)
    places = _places(wanted, _trimmed_lines(now))
    return places[-1] + 1 if len(places) > len(_places(wanted, _trimmed_lines(before))) else 0


def _trimmed_lines(text: bytes) -> list[bytes]:
    return [line.rstrip() for line in text.rstrip().split(b"\n")]


def _places(wanted: list[bytes], lines: list[bytes]) -> list[int]:
    return [
        place
        for place, line in enumerate(lines)
        if line == wanted[0] and lines[place : place + len(wanted)] == wanted
    ]


def _open_for_append(folder: Folder, name: str, path: str) -> tuple[int, bool]:
    """Return a descriptor to append to, and whether the file is new."""
    flags = os.O_RDWR | os.O_APPEND
    for _ in range(_OPEN_ATTEMPTS):
        try:
            return folder.open(name, flags | os.O_CREAT | os.O_EXCL), True
        except FileExistsError:
            refuse_read_only(folder, name, path)
        try:
            return open_regular(folder, name, path, flags), False
        except FileNotFoundError:  # deleted between the two
            continue
    raise WorkspaceError(f"{shown(path)} kept appearing and vanishing while it was opened.")


def refuse_read_only(folder: Folder, name: str, path: str) -> None:
    """Raise WorkspaceReadOnly for a file without any write permission, even for root."""
    try:
        info = folder.lstat(name)
    except FileNotFoundError:
        return
    if stat.S_ISREG(info.st_mode) and not info.st_mode & 0o222:
        raise WorkspaceReadOnly(
            f"{shown(path)} is marked read-only.", hint="Make it writable and try again."
        )


def _check_appendable(before: bytes, path: str, more: int) -> None:
    if len(before) + more > MAX_FILE_BYTES:
        raise WorkspaceError(
            f"{shown(path)} would grow beyond {MAX_FILE_BYTES:,} bytes.", hint="Start a new file."
        )
    if before.startswith(tuple(mark for mark, _ in WIDE_MARKS)):
        raise WorkspaceError(
            f"{shown(path)} is UTF-16 or UTF-32 text.", hint="Save it as UTF-8 before adding to it."
        )


def _write_once(fd: int, data: bytes, size: int, path: str) -> int:
    """Write at the end of the file with one call and return the offset; undo a short write."""
    count = os.write(fd, data)
    end = os.lseek(fd, 0, os.SEEK_CUR)
    if count == len(data):
        return end - count
    if os.fstat(fd).st_size == size + count:  # otherwise another program has appended too
        os.ftruncate(fd, size)
        os.fsync(fd)
    raise WorkspaceError(
        f"{shown(path)} could not be written in full.", hint="Check the free space of its disk."
    )


# --- replacing ---


def _current(folder: Folder, name: str, path: str) -> tuple[bytes, os.stat_result | None]:
    refuse_read_only(folder, name, path)
    try:
        fd = open_regular(folder, name, path)
    except FileNotFoundError:
        return b"", None
    try:
        info = os.fstat(fd)
        return read_all(fd, path), info
    finally:
        os.close(fd)


def _put(
    folder: Folder, name: str, path: str, data: bytes, info: os.stat_result | None, base_hash: str
) -> bool:
    """Write a temporary file, sync it and rename it over the file, unless that has changed.

    Returns whether the new file still had the name after the rename was synced."""
    fd, temporary = create_temporary(folder)
    with open(fd, "wb", buffering=0) as file:
        put = os.fstat(fd)
        try:
            if info is not None and hasattr(os, "fchmod"):
                os.fchmod(fd, stat.S_IMODE(info.st_mode))
            left = memoryview(data)
            while left:
                left = left[os.write(fd, left) :]
            os.fsync(fd)
            if os.name == "nt":  # an open file cannot be renamed there
                file.close()
            if not _is_unchanged(folder, name, info):
                latest, now = _current(folder, name, path)
                raise _conflict(path, base_hash, "" if now is None else _hash(latest))
            folder.rename(temporary, name)
        except BaseException:  # also on KeyboardInterrupt
            if os.name == "nt":
                file.close()
            with suppress(OSError):  # the first error says more; the next sweep removes the file
                remove_temporary(folder, temporary, put)
            raise
        folder.sync()
        return folder.holds(name, put)


def _is_unchanged(folder: Folder, name: str, info: os.stat_result | None) -> bool:
    """Whether the file is still the one that was read; None means that there was none."""
    try:
        now = folder.lstat(name)
    except FileNotFoundError:
        return info is None
    return info is not None and _version(now) == _version(info)


def _version(info: os.stat_result) -> tuple[int, ...]:
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns


# --- folders and errors ---


@contextmanager
def folder_for(root: Folder, path: str) -> Iterator[tuple[Folder, str]]:
    """Open the folder of a file, creating it if needed; yields it with the file's name."""
    *parents, name = split_relative(path)
    for depth in range(len(parents)):
        with folder_beneath(root, parents[:depth], path, ANCHOR) as above:
            _make_folder(above, parents[depth])
    with folder_beneath(root, parents, path, ANCHOR) as folder:
        sweep(folder)
        yield folder, name


def _make_folder(above: Folder, name: str) -> None:
    if above.exists(name):
        return
    with suppress(FileExistsError):  # another writer was faster, and may not have synced it yet
        above.make_folder(name)
    above.sync()


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn system errors into workspace errors that name the path and the cause."""
    try:
        yield
    except OSError as error:
        # The path inside the error is left out: it is relative to a descriptor.
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise WorkspaceReadOnly(
                f"{shown(path)} cannot be written: {reason_of(error)}.",
                hint="Make the workspace writable and try again.",
            ) from error
        raise WorkspaceError(
            f"{shown(path)} cannot be written: {reason_of(error)}.",
            hint=advice(error, "Check the disk it is on and try again."),
        ) from error
