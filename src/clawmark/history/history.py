"""Record the files of a workspace as versions, and look versions up.

A version is recorded after a sync that found changes and before a command looks at the history; an
append does not wait for it. Only files whose state changed since the last version are read."""

from __future__ import annotations

import difflib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from clawmark.history.repository import (
    Repository,
    Version,
    finish_replacement,
    remove_stale_locks,
)
from clawmark.model.errors import ClawmarkError, VersionMissing, WorkspaceError
from clawmark.model.values import FileState
from clawmark.system import file_lock, shared_json
from clawmark.system.private_files import make_private_folder

GRAIN_NS = 100_000_000
"""A file that changed this shortly before it was read may change again without a new time."""
LOCK_SECONDS = 10.0


class Retention(NamedTuple):
    """How much history is kept; the newest version always is."""

    days: int = 365
    megabytes: int = 256


DEFAULT_RETENTION = Retention()
KINDS = {"add": "added", "modify": "changed", "delete": "removed"}


class Change(NamedTuple):
    """A file that differs between two versions."""

    path: str
    kind: str
    """`added`, `changed` or `removed`."""


class VersionChanges(NamedTuple):
    """A version and what changed in it."""

    version: Version
    changes: tuple[Change, ...]


class VersionFiles:
    """The files of an opened version."""

    def __init__(self, repository: Repository, version: Version) -> None:
        self._repository = repository
        self.version = version

    @cached_property
    def blobs(self) -> dict[str, str]:
        """The blob of each file, by path."""
        return self._repository.files(self.version)

    def read(self, path: str) -> bytes | None:
        """Return a file; None if the version does not have it."""
        blob = self.blobs.get(path)
        return None if blob is None else self._repository.read(blob)


class History:
    """The versions of one workspace. Methods may be called by several processes at once."""

    def __init__(
        self,
        folder: str,
        retention: Retention = DEFAULT_RETENTION,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder = folder
        self._retention = retention
        self._clock = clock

    @property
    def exists(self) -> bool:
        return os.path.isdir(self.folder)

    @property
    def has_leftovers(self) -> bool:
        """Whether a rewrite was interrupted; the next change of the history finishes it."""
        return any(os.path.isdir(f"{self.folder}.{name}") for name in ("old", "new"))

    def record(
        self,
        files: Iterable[FileState],
        read: Callable[[str], bytes | None],
        reason: str,
        *,
        wait: bool = False,
    ) -> Version | None:
        """Add a version if a file changed; None if nothing changed or another process is recording.

        `read(path)` returns the bytes of a file, or None if it has disappeared. With `wait`, a
        recording of another process is waited for."""
        with self._locked(LOCK_SECONDS if wait else 0.0) as repository:
            if repository is None:
                return None
            known = self._load_states() if repository.head else {}
            blobs, states = dict[str, str](), dict[str, list[object]]()
            settled_before = int(self._clock() * 1e9) - GRAIN_NS
            for file in files:
                state = [file.size, file.mtime_ns, file.inode]
                *before, blob = known.get(file.path, (None,))
                if before != state:
                    data = read(file.path)
                    if data is None:
                        continue
                    blob = repository.add(data)
                blobs[file.path] = str(blob)
                if file.mtime_ns < settled_before:
                    states[file.path] = [*state, blob]
            version = repository.commit(blobs, seconds=int(self._clock()), reason=reason)
            self._save_states(states)
            if version is not None:
                self._limit(repository, version)
            return version

    def versions(self, path: str | None = None) -> Iterator[VersionChanges]:
        """Yield the versions in which a file changed, or all, the newest first."""
        repository = self._opened()
        if repository is None:
            return
        with closing(repository):
            for version in repository.versions():
                changes = tuple(
                    Change(changed, KINDS[kind])
                    for changed, kind in repository.changes(version)
                    if path in (None, changed)
                )
                if changes:
                    yield VersionChanges(version, changes)

    def find(self, name: str) -> Version:
        """Return the version whose id starts with `name`; WorkspaceError if there is not exactly
        one."""
        repository = self._opened()
        found = []
        if repository is not None and len(name) >= 4:
            with closing(repository):
                found = [one for one in repository.versions() if one.id.startswith(name)]
        if len(found) != 1:
            problem = "is not a version" if not found else "is the beginning of several versions"
            raise WorkspaceError(
                f"{name!r} {problem}.", hint="`clawmark history` lists the versions."
            )
        return found[0]

    def at(self, moment: datetime) -> Version | None:
        """Return the newest version that was recorded before a moment."""
        repository = self._opened()
        if repository is None:
            return None
        with closing(repository):
            limit = moment.timestamp()
            return next((one for one in repository.versions() if one.seconds < limit), None)

    def read(self, version: Version, path: str) -> bytes | None:
        """Return a file as it was in a version; None if it did not exist."""
        repository = self._opened()
        if repository is None:
            return None
        with closing(repository):
            blob = repository.files(version).get(path)
            return None if blob is None else repository.read(blob)

    def tree(self, version: Version) -> Iterator[tuple[str, bytes]]:
        """Yield every file of a version with its bytes."""
        repository = self._opened()
        if repository is None:
            return
        with closing(repository):
            for path, blob in repository.files(version).items():
                yield path, repository.read(blob)

    @contextmanager
    def opened(self, version: Version) -> Iterator[VersionFiles]:
        """Open a version to read several of its files."""
        repository = self._opened()
        if repository is None:
            raise missing_history()
        with closing(repository):
            yield VersionFiles(repository, version)

    def texts(
        self, path: str, newest: Version | None = None
    ) -> Iterator[tuple[Version, bytes | None]]:
        """Yield the states of a file with the version that each began in, from `newest` back.

        None stands for no file."""
        repository = self._opened()
        if repository is None:
            return
        with closing(repository):
            began: Version | None = None
            blob: str | None = None
            for version in repository.versions(newest):
                now = repository.find(version, path)
                if began is not None and now != blob:
                    yield began, None if blob is None else repository.read(blob)
                began, blob = version, now
            if began is not None:
                yield began, None if blob is None else repository.read(blob)

    def has(self, name: str) -> bool:
        """Whether there is a version with this id; a rewritten version has another one."""
        repository = self._opened()
        if repository is None:
            return False
        with closing(repository):
            return repository.version(name) is not None

    def contents(self) -> Iterator[tuple[Version, str, bytes]]:
        """Yield each content that a file has had, once, with the newest version that has it."""
        repository = self._opened()
        if repository is None:
            return
        with closing(repository):
            seen = set[tuple[str, str]]()
            for version in repository.versions():
                for path, blob in repository.files(version).items():
                    if (path, blob) not in seen:
                        seen.add((path, blob))
                        yield version, path, repository.read(blob)

    def diff(self, path: str, old: Version | None, new: Version | None) -> str:
        """Return a unified diff of a file between two versions; None stands for no file."""
        before = self.read(old, path) if old else None
        after = self.read(new, path) if new else None
        return unified_diff(path, before, after)

    def rewrite(self, change: Callable[[str, bytes], bytes | None]) -> None:
        """Change the files of every version (None removes a file) and delete the old bytes."""
        with self._locked(LOCK_SECONDS) as repository:
            if repository is None:
                raise ClawmarkError(
                    "Another process is using the history.", hint="Try again in a moment."
                )
            repository.rewrite(change)
            self._save_states({})

    def size(self) -> int:
        """Return the bytes that the history takes on disk."""
        repository = self._opened()
        if repository is None:
            return 0
        with closing(repository):
            return repository.size()

    def _limit(self, repository: Repository, newest: Version) -> None:
        """Remove the oldest versions beyond the retention."""
        oldest = int(self._clock()) - self._retention.days * 86_400
        is_large = repository.size() > self._retention.megabytes << 20
        versions = list(repository.versions())
        keep = {one.id for one in versions if one.seconds >= oldest} | {newest.id}
        if is_large:
            keep &= {one.id for one in versions[: max(1, len(versions) // 2)]}
        if len(keep) == len(versions) or (not is_large and versions[-1].seconds >= oldest - 86_400):
            return
        repository.rewrite(lambda _, data: data, keep=lambda one: one.id in keep)

    def _opened(self) -> Repository | None:
        if not self.exists and not os.path.isdir(f"{self.folder}.old"):
            return None
        if not self.exists:
            with self._locked(LOCK_SECONDS):
                pass  # an interrupted replacement is finished
        return Repository(self.folder)

    @contextmanager
    def _locked(self, seconds: float) -> Iterator[Repository | None]:
        make_private_folder(os.path.dirname(self.folder))
        descriptor = file_lock.acquire(f"{self.folder}.lock", seconds)
        if descriptor is None:
            yield None
            return
        try:
            finish_replacement(self.folder)
            remove_stale_locks(self.folder)
            with closing(Repository(self.folder)) as repository:
                yield repository
        finally:
            file_lock.release(descriptor)

    def _load_states(self) -> dict[str, list[object]]:
        try:
            found = (shared_json.load(self._states_path) or {}).get("files")
        except (ValueError, OSError):
            return {}
        if not isinstance(found, dict):
            return {}
        return {
            path: state
            for path, state in found.items()
            if isinstance(state, list) and len(state) == 4
        }

    def _save_states(self, states: dict[str, list[object]]) -> None:
        shared_json.save(self._states_path, {"files": states})

    @property
    def _states_path(self) -> str:
        return f"{self.folder}.files.json"


def unified_diff(path: str, before: bytes | None, after: bytes | None) -> str:
    """Return a unified diff of two texts; None stands for no file."""
    old = (before or b"").decode("utf-8", "replace").splitlines(keepends=True)
    new = (after or b"").decode("utf-8", "replace").splitlines(keepends=True)
    lines = difflib.unified_diff(
        old,
        new,
        fromfile="/dev/null" if before is None else f"a/{path}",
        tofile="/dev/null" if after is None else f"b/{path}",
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def missing_history() -> VersionMissing:
    """Return the error for a question about an earlier time before any version was recorded."""
    return VersionMissing(
        "There is no history yet, so only the present state of the memory is known.",
        argument="asOf",
        hint="`clawmark index` records the first version; leave the day out until then.",
    )


def set_aside(folder: str) -> str:
    """Rename a damaged history, and return its new name."""
    aside = f"{folder}.damaged-{time.time_ns()}"
    os.rename(folder, aside)
    return aside
