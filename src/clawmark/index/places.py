"""The files an index consists of: made with private permissions, known on network disks, set aside when damaged."""

from __future__ import annotations

import os

from clawmark.errors import IndexStoreError
from clawmark.index.locks import WriteLock

SIDECARS = ("-wal", "-shm", "-journal")
KEPT_ASIDE = 2
"""Damaged indexes are kept for a look, but never pile up."""

# File systems whose locks or shared memory SQLite's WAL cannot trust, by the names the kernel gives them.
_SHARED = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "gfs2", "glusterfs", "lustre", "ncpfs", "ocfs2")
_SHARED_WITH_HOST = ("vboxsf", "virtiofs", "vmhgfs", "fuse", "fuseblk")


def lock_path(path: str) -> str:
    """The lock that belongs to an index."""
    return path + ".lock"


def make_private_folder(folder: str) -> None:
    """Create a folder and its missing parents with mode 0700; folders that exist are left as they are."""
    if not folder or os.path.isdir(folder):
        return
    make_private_folder(os.path.dirname(folder))
    try:
        os.mkdir(folder, 0o700)
        os.chmod(folder, 0o700)
    except FileExistsError:
        return
    except OSError as error:
        raise IndexStoreError(
            f"The folder {folder} cannot be made: {error.strerror}.", hint="Choose another --state-dir."
        ) from error


def make_private_file(path: str) -> None:
    """Create an empty file with mode 0600, whatever the umask; SQLite gives its sidecars the same mode.

    Only ever a new file: closing any descriptor of a database in use would drop SQLite's own locks. A log that an older
    file left behind goes, since SQLite would read it as this one's.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileExistsError:
        return
    except OSError as error:
        raise IndexStoreError(
            f"The index {path} cannot be made: {error.strerror}.", hint="Choose another --state-dir."
        ) from error
    try:
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
    for suffix in SIDECARS:
        if os.path.lexists(path + suffix):
            os.unlink(path + suffix)


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


def set_aside(path: str, *, timeout: float = 10.0) -> str:
    """Rename a damaged index and its sidecars to `<path>.corrupt-<n>` and return that name; the newest two are kept."""
    with WriteLock(lock_path(path)).held(timeout):
        taken = sorted(_aside_numbers(path))
        aside = f"{path}.corrupt-{taken[-1] + 1 if taken else 1}"
        # The sidecars go first: a main file without its log is only old, a log without its main file is a trap.
        for suffix in (*SIDECARS, ""):
            if os.path.lexists(path + suffix):
                os.replace(path + suffix, aside + suffix)
        for number in taken[: len(taken) + 1 - KEPT_ASIDE]:
            for suffix in (*SIDECARS, ""):
                if os.path.lexists(f"{path}.corrupt-{number}{suffix}"):
                    os.unlink(f"{path}.corrupt-{number}{suffix}")
    return aside


def _aside_numbers(path: str) -> list[int]:
    folder, name = os.path.split(path)
    starts = f"{name}.corrupt-"
    tails = [entry.removeprefix(starts) for entry in os.listdir(folder or ".") if entry.startswith(starts)]
    return [int(tail) for tail in tails if tail.isdecimal()]
