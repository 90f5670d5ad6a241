"""The git repository that keeps the versions of a workspace.

It is a bare repository in the state folder; the user's own repository is never touched. Each
version is a commit of the whole workspace. Dulwich reads and writes it, so git need not be
installed, and git can read it. Only what is reachable from the branch counts.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import traceback
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha1
from typing import NamedTuple

from dulwich.diff_tree import tree_changes
from dulwich.errors import (
    ApplyDeltaError,
    ChecksumMismatch,
    FileFormatException,
    NotGitRepository,
    NotTreeError,
    ObjectMissing,
    WrongObjectException,
)
from dulwich.file import _GitFile
from dulwich.object_store import iter_tree_contents, tree_lookup_path
from dulwich.objects import Blob, Commit, ObjectID, ShaFile, Tree
from dulwich.pack import write_pack
from dulwich.refs import Ref
from dulwich.repo import Repo

from clawmark.model.errors import HistoryDamaged, HistoryUnavailable, advice
from clawmark.system import private_files
from clawmark.system.private_files import make_private_folder

BRANCH = Ref(b"refs/heads/main")
AUTHOR = b"Clawmark <clawmark@localhost>"
FILE_MODE, FOLDER_MODE = 0o100644, 0o040000
DAMAGE = (
    ApplyDeltaError,
    ChecksumMismatch,
    FileFormatException,
    NotGitRepository,
    ObjectMissing,
    WrongObjectException,
    KeyError,
    ValueError,
    zlib.error,
)
"""What dulwich raises for a repository that is not as it was written."""
MOST_LOOSE = 256
"""Above this many loose objects they are packed."""
MANY = 32
"""Above this many files at once they are packed at once."""
FAST = 1
"""The compression level of such a pack, which takes less time and little more space."""


class Version(NamedTuple):
    """One state of the workspace."""

    id: str
    seconds: int
    """When it was recorded, since 1970."""
    reason: str
    parent: str
    """The id of the version before it; empty for the first one."""


class Repository:
    """The versions of one workspace. Callers hold the lock of `History` for every change."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        with _translated(folder):
            self._repo = _open(folder)

    def close(self) -> None:
        self._repo.close()

    @property
    def head(self) -> Version | None:
        """The newest version."""
        with _translated(self.folder):
            name = self._head()
            return self._version(self._commit(name)) if name else None

    def versions(self, newest: Version | None = None) -> Iterator[Version]:
        """Yield every version from `newest` back; from the head if None."""
        version = newest or self.head
        while version is not None:
            yield version
            version = self.version(version.parent) if version.parent else None

    def version(self, name: str) -> Version | None:
        """Return the version with this id; None if it does not exist or was removed."""
        with _translated(self.folder):
            found = name.encode("ascii", "replace")
            return self._version(self._commit(found)) if found in self._repo else None

    def files(self, version: Version) -> dict[str, str]:
        """Return the blob of every file of a version."""
        with _translated(self.folder):
            tree = self._commit(version.id.encode()).tree
            entries = iter_tree_contents(self._repo.object_store, tree)
            return {os.fsdecode(entry.path): entry.sha.decode() for entry in entries}

    def find(self, version: Version, path: str) -> str | None:
        """Return the blob of one file of a version; None if the version does not have it."""
        with _translated(self.folder):
            tree = self._commit(version.id.encode()).tree
            try:
                mode, name = tree_lookup_path(
                    self._repo.object_store.__getitem__, tree, os.fsencode(path)
                )
            except (KeyError, NotTreeError):
                return None
            return name.decode() if mode == FILE_MODE else None

    def changes(self, version: Version) -> list[tuple[str, str]]:
        """Return the path and the kind (`add`, `modify`, `delete`) of each change of a version."""
        return self.compare(version.parent, version)

    def compare(self, old: str, version: Version) -> list[tuple[str, str]]:
        """Return the same for everything that changed since the version with the id `old`."""
        with _translated(self.folder):
            before = self._commit(old.encode()).tree if old else None
            tree = self._commit(version.id.encode()).tree
            found = tree_changes(self._repo.object_store, before, tree)
            sides = ((change.type, change.new or change.old) for change in found)
            return sorted((os.fsdecode(side.path), kind) for kind, side in sides if side)

    def read(self, blob: str) -> bytes:
        """Return the bytes of a blob."""
        with _translated(self.folder):
            found = self._repo[blob.encode()]
            if not isinstance(found, Blob):
                raise ValueError(f"{blob} is not a file")
            return found.as_raw_string()

    def add(self, texts: Sequence[bytes]) -> list[str]:
        """Store the bytes of files and return their blobs."""
        blobs = [Blob.from_string(data) for data in texts]
        with _translated(self.folder):
            if len(blobs) > MANY:  # one file instead of many, which are synced one by one
                self._add_pack({blob.id: blob for blob in blobs}.values())
            else:
                self._add_missing(blobs)
        return [blob.id.decode() for blob in blobs]

    def _add_pack(self, objects: Iterable[ShaFile]) -> None:
        """Store different objects in one pack. `add_objects` of dulwich would read it again, twice,
        to make its index."""
        store, found = self._repo.object_store, sorted(objects, key=lambda one: one.id)
        name = sha1(b"".join(bytes.fromhex(one.id.decode()) for one in found)).hexdigest()
        path = os.path.join(store.pack_dir, f"pack-{name}")
        write_pack(path, found, store.object_format, compression_level=FAST)
        for ending in (".pack", ".idx"):
            os.chmod(path + ending, private_files.FILE)

    def _add_missing(self, objects: Sequence[ShaFile]) -> None:
        for one in objects:
            if one.id not in self._repo.object_store:
                self._repo.object_store.add_object(one)

    def commit(self, files: Mapping[str, str], *, seconds: int, reason: str) -> Version | None:
        """Add a version with these files (path → blob); None if it equals the newest one."""
        with _translated(self.folder):
            tree = self._write_tree(files)
            name = self._head()
            if name and self._commit(name).tree == tree:
                return None
            commit = self._new_commit(tree, [name] if name else [], seconds, reason)
            self._set_head(self._repo, commit.id)
            self._pack_when_many()
            return self._version(commit)

    def rewrite(
        self,
        change: Callable[[str, bytes], bytes | None],
        *,
        keep: Callable[[Version], bool] = lambda _: True,
    ) -> dict[str, str]:
        """Rebuild the history from the versions that `keep` accepts, with every file changed by
        `change(path, data)` (None removes it), and delete everything else from the disk.

        Return the new id of each kept version. A version that equals the one before it is merged
        with it."""
        with _translated(self.folder):
            ids = dict[str, str]()
            changed = dict[tuple[str, str], str | None]()
            parent: ObjectID | None = None
            for version in reversed([one for one in self.versions() if keep(one)]):
                files = dict[str, str]()
                for path, blob in self.files(version).items():
                    if (path, blob) not in changed:
                        before = self.read(blob)
                        after = change(path, before)
                        changed[path, blob] = (
                            blob
                            if after == before
                            else None
                            if after is None
                            else self.add([after])[0]
                        )
                    new = changed[path, blob]
                    if new is not None:
                        files[path] = new
                tree = self._write_tree(files)
                if parent is None or self._commit(parent).tree != tree:
                    parents = [parent] if parent else []
                    parent = self._new_commit(tree, parents, version.seconds, version.reason).id
                ids[version.id] = parent.decode()
            self._replace_with(parent)
            return ids

    def size(self) -> int:
        """Return the bytes that the repository takes on disk."""
        total = 0
        for folder, _, names in os.walk(self.folder):
            for name in names:
                with contextlib.suppress(OSError):
                    total += os.stat(os.path.join(folder, name)).st_size
        return total

    def _write_tree(self, files: Mapping[str, str]) -> ObjectID:
        """Store the folders of some files (path → blob) and return that of the root."""
        folders = {"": Tree()}
        for path, blob in files.items():
            folder, _, name = path.rpartition("/")
            if folder not in folders:
                _add_folders(folders, folder)
            folders[folder].add(os.fsencode(name), FILE_MODE, ObjectID(blob.encode()))
        for folder in sorted(folders, key=lambda one: one.count("/"), reverse=True):
            if folder:
                above, _, name = folder.rpartition("/")
                folders[above].add(os.fsencode(name), FOLDER_MODE, folders[folder].id)
        self._add_missing(list(folders.values()))
        return folders[""].id

    def _new_commit(
        self, tree: ObjectID, parents: list[ObjectID], seconds: int, reason: str
    ) -> Commit:
        commit = Commit()
        commit.tree = tree
        commit.parents = parents
        commit.author = commit.committer = AUTHOR
        commit.author_time = commit.commit_time = seconds
        commit.author_timezone = commit.commit_timezone = 0
        commit.encoding = b"UTF-8"
        commit.message = reason.encode("utf-8", "backslashreplace")
        self._repo.object_store.add_object(commit)
        return commit

    @staticmethod
    def _set_head(repo: Repo, head: ObjectID) -> None:
        repo.refs[BRANCH] = head
        os.chmod(os.path.join(repo.path, os.fsdecode(BRANCH)), private_files.FILE)

    def _head(self) -> ObjectID | None:
        name = self._repo.refs.read_ref(BRANCH)
        return ObjectID(name) if name else None

    def _commit(self, name: bytes) -> Commit:
        found = self._repo[name]
        if not isinstance(found, Commit):
            raise ValueError(f"{name.decode()} is not a commit")
        return found

    def _version(self, commit: Commit) -> Version:
        return Version(
            id=commit.id.decode(),
            seconds=commit.commit_time,
            reason=commit.message.decode("utf-8", "replace"),
            parent=commit.parents[0].decode() if commit.parents else "",
        )

    def _pack_when_many(self) -> None:
        if self._repo.object_store.count_loose_objects() > MOST_LOOSE:
            self._repo.object_store.pack_loose_objects()

    def _replace_with(self, head: ObjectID | None) -> None:
        """Copy what is reachable from `head` into a new repository, and put that in place."""
        new = f"{self.folder}.new"
        shutil.rmtree(new, ignore_errors=True)
        fresh = _open(new)
        try:
            if head is not None:
                fresh.object_store.add_objects([(one, None) for one in self._reachable(head)])
                self._set_head(fresh, head)
        finally:
            fresh.close()
        self._repo.close()
        old = f"{self.folder}.old"
        shutil.rmtree(old, ignore_errors=True)
        os.rename(self.folder, old)
        os.rename(new, self.folder)
        shutil.rmtree(old)
        self._repo = _open(self.folder)

    def _reachable(self, head: ObjectID) -> Iterator[ShaFile]:
        seen = set[bytes]()
        waiting = [head]
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            found = self._repo[name]
            yield found
            if isinstance(found, Commit):
                waiting += [found.tree, *found.parents]
            elif isinstance(found, Tree):
                waiting += [entry.sha for entry in found.items()]


def finish_replacement(folder: str) -> None:
    """Finish or undo a replacement of the repository that was interrupted."""
    old, new = f"{folder}.old", f"{folder}.new"
    if os.path.isdir(old) and not os.path.isdir(folder):
        # The old repository was moved away and the new one is complete.
        os.rename(new, folder)
    shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)


def remove_leftovers(folder: str) -> None:
    """Remove the locks and unfinished files of a process that was killed; the caller holds the lock
    of the history."""
    for here, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".lock") or name.startswith("tmp"):
                os.unlink(os.path.join(here, name))


def _open(folder: str) -> Repo:
    if os.path.isdir(folder):
        return Repo(folder)
    # Complete before it has its name: a process may be killed in between.
    new = f"{folder}.new"
    shutil.rmtree(new, ignore_errors=True)
    make_private_folder(new)
    with contextlib.closing(Repo.init_bare(new, default_branch=b"main")) as repo:
        config = repo.get_config()
        config.set((b"core",), b"fsyncObjectFiles", True)
        config.set((b"core",), b"sharedRepository", b"0600")  # new files are for their owner only
        config.write_to_path()
    for here, _, names in os.walk(new):
        os.chmod(here, private_files.FOLDER)
        for name in names:
            os.chmod(os.path.join(here, name), private_files.FILE)
    os.rename(new, folder)
    return Repo(folder)


def damaged(folder: str) -> HistoryDamaged:
    return HistoryDamaged(
        f"The history in {folder} is damaged and cannot be read.",
        hint="`clawmark doctor --fix` sets it aside and starts a new one; memory files are not "
        "affected.",
    )


@contextlib.contextmanager
def _translated(folder: str) -> Iterator[None]:
    """Turn what a damaged repository raises into HistoryDamaged."""
    with available(folder):
        try:
            yield
        except (*DAMAGE, FileNotFoundError, NotADirectoryError) as error:
            raise damaged(folder) from error


@contextlib.contextmanager
def available(folder: str) -> Iterator[None]:
    """Turn other errors of the operating system into HistoryUnavailable."""
    try:
        yield
    except OSError as error:
        _abort_writes(error)
        reason = error.strerror or type(error).__name__
        raise HistoryUnavailable(
            f"The history in {folder} cannot be used: {reason}.",
            hint=advice(error, "Check the permissions of this folder and of those around it."),
        ) from error


def _abort_writes(error: OSError) -> None:
    """Close the files whose writing failed; dulwich would print a traceback for each of them when
    they are collected."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        for value in tuple(frame.f_locals.values()):
            if isinstance(value, _GitFile) and hasattr(value, "_closed"):  # else it was not opened
                for _ in range(2):  # the first time closes the file and fails again
                    with contextlib.suppress(OSError):
                        value.abort()


def _add_folders(folders: dict[str, Tree], folder: str) -> None:
    """Add an empty tree for a folder and for those above it that have none."""
    while folder not in folders:
        folders[folder] = Tree()
        folder = folder.rpartition("/")[0]
