"""The files an index consists of: made with private permissions, known on network disks, sealed,
set aside when damaged.

Next to `<agent>.sqlite` and SQLite's own sidecars there are two locks and a seal. The seal is one
line: size and time of the main file after the last checkpoint, and the id of the index. It is
written under the lock and believed as long as it is true. A new index is made under another name
and moved to its own when it is whole."""

from __future__ import annotations

import os

from clawmark.model.errors import IndexStoreError
from clawmark.store.sqlite.db import SIDECARS, not_a_file
from clawmark.store.sqlite.schema import APPLICATION_ID
from clawmark.system import private_files as private
from clawmark.system.private_files import open_private

SEAL, DRAFT = ".seal", ".new-"
KEPT_ASIDE = 2
"""Damaged indexes are kept for a look, but never pile up."""

# File systems whose locks or shared memory SQLite's WAL cannot trust, by the names the kernel gives
# them.
_SHARED = (
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
)
_SHARED_WITH_HOST = ("vboxsf", "virtiofs", "vmhgfs", "fuse", "fuseblk")


def lock_path(path: str) -> str:
    """The lock that belongs to an index."""
    return path + ".lock"


def staging_lock_path(path: str) -> str:
    """The lock that is held while a file is stored in several transactions."""
    return path + ".staging.lock"


def make_private_folder(folder: str) -> None:
    """Create a folder and its missing parents with mode 0700; folders that exist are left as they
    are.
    """
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
    """An empty file with mode 0600, whatever the umask, to make a new index in; SQLite gives its
    sidecars the same mode.

    Call it under the lock.
    """
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


def put_in_place(draft: str, path: str) -> None:
    """Give a new index its name; call it under the lock.

    A log that an older file left behind goes first, since SQLite would read it as this one's. Other
    drafts go then: those of processes that were killed, and of one that makes an index at the same
    time because somebody deleted the lock."""
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
        return  # somebody deletes what is here just now: whoever looks finds nothing, and begins anew
    except OSError as error:
        raise IndexStoreError(
            f"The index {path} cannot be made: {error.strerror}.",
            hint="Choose another --state-dir.",
        ) from error


def drop_draft(draft: str) -> None:
    """Take away a draft that came to nothing."""
    for suffix in (*SIDECARS, ""):
        _remove(draft + suffix)


def shared_file_system(path: str) -> str:
    """The kind of network or user-space file system `path` lies on, or nothing for a local disk.

    Known limit: only Linux says so without help; elsewhere every disk counts as local.
    """
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
    return kind if kind in _SHARED + _SHARED_WITH_HOST or kind.startswith("fuse.") else ""


def write_seal(path: str, index_id: str) -> None:
    """Note what the main file looks like now; call it under the lock.

    Failing is fine: without a seal every page is checked.
    """
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


def set_aside(path: str, kind: str) -> str:
    """Rename a damaged index and its sidecars to `<path>.<kind>-<n>` and return that name; the
    newest two are kept.

    Call it under the lock. A database of another program, or anything that is not a file, is called
    `foreign`, and every one of them is kept."""
    try:
        kind = "foreign" if _is_foreign(path) else kind
        taken = sorted(_aside_numbers(path, kind))
        aside = _free_name(path, kind)
        if not os.path.isdir(path + SEAL):
            _remove(path + SEAL)
        # The sidecars go first: a main file without its log is only old, a log without its main
        # file is a trap.
        for suffix in (*SIDECARS, ""):
            if os.path.lexists(path + suffix):
                # Something else in the place of a sidecar must not keep the main file from being
                # read.
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


def _is_foreign(path: str) -> bool:
    """Whether this is a sound-looking database that another program made, or something that is not
    a file.
    """
    if not_a_file(path):
        return True
    with open(path, "rb") as file:
        head = file.read(100)
    return (
        head.startswith(b"SQLite format 3\0")
        and int.from_bytes(head[68:72], "big") != APPLICATION_ID
    )


def _free_name(path: str, kind: str) -> str:
    """The next free name that something at `path` can be renamed to."""
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
    """Delete a file if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
