"""The files of an index: created with private permissions, sealed, and set aside when damaged.

Next to `<agent>.sqlite` and SQLite's own sidecars there are two locks and a seal. The seal is one
line: size and time of the main file after the last checkpoint, and the id of the index. It is
written under the write lock and valid as long as it matches."""

from __future__ import annotations

import os

from clawmark.model.errors import ConfigError, IndexStoreError
from clawmark.store.sqlite.file_stamps import (
    SIDECARS,
    not_a_file,
)
from clawmark.store.sqlite.schema import APPLICATION_ID
from clawmark.system import private_files as private
from clawmark.system.private_files import open_private

SEAL, DRAFT = ".seal", ".new-"
KEPT_ASIDE = 2
"""How many damaged indexes are kept for inspection."""

# File systems on which WAL is not safe, by the kernel's names.
_SHARED = frozenset(
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "gfs2",
        "glusterfs",
        "lustre",
        "ncpfs",
        "ocfs2",
        "vboxsf",
        "virtiofs",
        "vmhgfs",
        "fuse",
        "fuseblk",
    ]
)
MAGIC = b"SQLite format 3\0"
"""The first bytes of every SQLite database."""


def lock_path(path: str) -> str:
    """Return the path of the write lock."""
    return path + ".lock"


def staging_lock_path(path: str) -> str:
    """Return the path of the lock that is held while a large file is stored."""
    return path + ".staging.lock"


def make_private_folder(folder: str) -> None:
    """Create a folder and its missing parents with mode 0700; existing folders are not changed."""
    if os.path.isdir(folder):
        return

    try:
        private.make_private_folder(folder)
    except OSError as error:
        raise IndexStoreError(
            f"The folder {folder} cannot be made: {error.strerror}.",
            hint="Choose another --state-dir.",
        ) from error


def make_draft(path: str) -> str:
    """Create an empty file with mode 0600 for a new index; SQLite gives its sidecars the same mode.

    Requires the write lock."""
    draft = f"{path}{DRAFT}{os.getpid()}"
    try:
        drop_draft(draft)
        os.close(open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    except OSError as error:
        raise IndexStoreError(
            f"The index {path} cannot be made: {error.strerror}.",
            hint="Choose another --state-dir.",
        ) from error
    return draft


def install_draft(draft: str, path: str) -> None:
    """Rename a new index to its final name; requires the write lock.

    A log that an older file left is deleted first, since SQLite would apply it to this one. Other
    drafts are deleted too: they belong to killed processes, or to one that lost because the lock
    was deleted."""
    folder, name = os.path.split(path)
    try:
        for suffix in (*SIDECARS, SEAL):
            if os.path.isdir(path + suffix) and not os.path.islink(path + suffix):
                os.replace(path + suffix, _free_name(path + suffix, "foreign"))
            _remove(path + suffix)
        os.replace(draft, path)
        for entry in sorted(os.listdir(folder or ".")):
            if entry.startswith(name + DRAFT):
                _remove(os.path.join(folder, entry))
    except FileNotFoundError:
        return  # Another process is deleting the files; opening is retried.
    except OSError as error:
        raise IndexStoreError(
            f"The index {path} cannot be made: {error.strerror}.",
            hint="Choose another --state-dir.",
        ) from error


def drop_draft(draft: str) -> None:
    """Delete an unused draft."""
    for suffix in (*SIDECARS, ""):
        _remove(draft + suffix)


def shared_file_system(path: str) -> str:
    """Return the kind of network or user-space file system of `path`; empty for a local disk.

    Known limit: only Linux reports it; elsewhere every disk counts as local."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
            lines = mounts.readlines()
    except OSError:
        return ""
    real = os.path.realpath(os.path.dirname(path))
    longest, kind = -1, ""
    for line in lines:
        before, _, after = line.partition(" - ")
        mount = before.split(" ")[4].replace("\\040", " ")
        inside = real == mount or real.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= longest:
            longest, kind = len(mount), after.split(" ")[0]
    return kind if kind in _SHARED or kind.startswith("fuse.") else ""


def write_seal(path: str, index_id: str) -> None:
    """Record what the main file looks like now; requires the write lock.

    Failing is harmless: without a seal every page is checked."""
    try:
        facts = os.stat(path)
        seal = f"{facts.st_size} {facts.st_mtime_ns} {index_id} ".encode()
        descriptor = open_private(
            path + SEAL, os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)
        )
        try:
            if os.read(descriptor, 200) != seal:
                os.ftruncate(descriptor, 0)
                os.lseek(descriptor, 0, os.SEEK_SET)
                os.write(descriptor, seal)
        finally:
            os.close(descriptor)
    except OSError:
        return


def refuse_other_file(path: str) -> None:
    """Raise ConfigError if a path that the user configured holds something else than a database.

    It would be set aside otherwise, like a damaged index, but it may be the user's own file."""
    is_other = bool(not_a_file(path))
    if not is_other:
        try:
            with open(path, "rb") as file:
                is_other = file.read(len(MAGIC)) not in (b"", MAGIC)
        except OSError:
            return  # there is no file, or opening the index reports why it cannot be read
    if is_other:
        raise ConfigError(
            f"memorySearch.store.path names {path}, which is not an index.",
            key="memorySearch.store.path",
            hint="Choose a path for the index that nothing else uses.",
        )


def set_aside(path: str, kind: str) -> str:
    """Rename a damaged index and its sidecars to `<path>.<kind>-<n>` and return that name; the
    newest two are kept.

    Requires the write lock. A database of another program, or anything that is not a file, is named
    `foreign`, and all of them are kept."""
    try:
        kind = "foreign" if _is_foreign(path) else kind
        taken = sorted(_aside_numbers(path, kind))
        aside = _free_name(path, kind)
        if not os.path.isdir(path + SEAL):
            _remove(path + SEAL)
        # The sidecars go first: a main file without its log is only old, but a log without its main
        # file would be applied to the next one.
        for suffix in (*SIDECARS, ""):
            if os.path.lexists(path + suffix):
                # Something else in the place of a sidecar must not prevent reading the main file.
                is_file = os.path.isfile(path + suffix) or not suffix
                os.replace(path + suffix, aside + suffix if is_file else f"{aside}.{suffix[1:]}")
        for number in taken[: len(taken) + 1 - KEPT_ASIDE] if kind != "foreign" else ():
            for suffix in (*SIDECARS, ""):
                _remove(f"{path}.{kind}-{number}{suffix}")
    except OSError as error:
        raise IndexStoreError(
            f"The damaged index {path} cannot be set aside: {error.strerror}.",
            hint="Check the folder's permissions, or choose another --state-dir.",
        ) from error
    return aside


def remove_set_aside(path: str) -> None:
    """Delete the damaged indexes that were set aside; those of other programs stay."""
    folder, name = os.path.split(path)
    try:
        entries = os.listdir(folder or ".")
    except FileNotFoundError:
        return
    for entry in entries:
        rest = entry.removeprefix(f"{name}.")
        kind, dash, number = rest.partition("-")
        digits = number.removesuffix("-wal").removesuffix("-shm").removesuffix("-journal")
        is_ours = rest != entry and dash and kind != "foreign" and digits.isdecimal()
        if is_ours and os.path.isfile(os.path.join(folder, entry)):
            _remove(os.path.join(folder, entry))


def _is_foreign(path: str) -> bool:
    """Return whether this is an intact database of another program, or not a file at all."""
    if not_a_file(path):
        return True
    with open(path, "rb") as file:
        head = file.read(100)
    return head.startswith(MAGIC) and int.from_bytes(head[68:72], "big") != APPLICATION_ID


def _free_name(path: str, kind: str) -> str:
    """Return the next free name for renaming a file."""
    return f"{path}.{kind}-{max(_aside_numbers(path, kind), default=0) + 1}"


def _aside_numbers(path: str, kind: str) -> list[int]:
    folder, name = os.path.split(path)
    starts = f"{name}.{kind}-"
    tails = [
        entry.removeprefix(starts)
        for entry in os.listdir(folder or ".")
        if entry.startswith(starts)
    ]
    return [int(tail) for tail in tails if tail.isdecimal()]


def _remove(path: str) -> None:
    """Delete a file if it exists."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
