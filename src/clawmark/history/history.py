"""Record the files of a workspace as versions, and look versions up.

A version is recorded after a sync that found changes and before a command looks at the history; an
append does not wait for it. Only files whose state changed since the last version are read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from clawmark.history import recorded_files
from clawmark.history.recorded_files import NOTHING, RecordedFiles, state_of
from clawmark.history.repository import (
    Repository,
    Version,
    available,
    damaged,
    finish_replacement,
    remove_leftovers,
)
from clawmark.model.errors import ClawmarkError, VersionMissing, WorkspaceError
from clawmark.model.values import FileState
from clawmark.system import file_lock
from clawmark.system.private_files import make_private_folder, open_private
from clawmark.text.line_diff import line_changes, unified_lines

GRAIN_NS = 100_000_000
"""A file that changed this shortly before it was read may change again without a new time."""
LOCK_SECONDS = 10.0
DAY = 86_400
MOST_BYTES_AT_ONCE = 32 << 20
"""How much of changed files is held in memory while a version is made."""


class Retention(NamedTuple):
    """How much history is kept, 0 for no limit; the newest version always is."""

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
    since: int = 0
    """When the version before it was recorded, in seconds since 1970; 0 for the first one."""


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
        on_removed: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_removed` is called after versions were removed because of the retention."""
        # A link to a folder on another disk is resolved, so that the history is replaced there.
        self.folder = os.path.realpath(folder) if os.path.islink(folder) else folder
        self._retention = retention
        self._clock = clock
        self._on_removed = on_removed

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
        unlisted: Sequence[str] = (),
    ) -> Version | None:
        """Add a version if a file changed; None if nothing changed or another process is recording.

        `read(path)` returns the bytes of a file, or None if it has disappeared; a file that it
        raises WorkspaceError for, and those below the `unlisted` folders, stay as they were. With
        `wait`, a recording of another process is waited for."""
        with self._locked(LOCK_SECONDS if wait else 0.0) as repository:
            if repository is None:
                return None
            head = repository.head
            recorded = recorded_files.load(self.folder)
            if head is None or recorded.version != head.id:
                recorded = NOTHING
            blobs, changed = dict[str, str](), list[FileState]()
            states = dict[str, str]()
            for file in files:
                state = state_of(file)
                blob = recorded.blobs.get(state)
                if blob is None:
                    changed.append(file)
                else:
                    blobs[file.path] = states[state] = blob
            settled_before = int(self._clock() * 1e9) - GRAIN_NS
            kept = list(unlisted)
            for file, blob in _added(repository, changed, read, kept):
                blobs[file.path] = blob
                if file.mtime_ns < settled_before:
                    states[state_of(file)] = blob
            if kept and head:
                before_it = repository.files(head)
                blobs = {
                    path: before_it[path] for path in before_it if _is_below(path, kept)
                } | blobs
            seconds = int(self._clock())
            version = repository.commit(blobs, seconds=seconds, reason=reason)
            limited = recorded.limited
            if version is not None and self._limit(repository, version, seconds - limited >= DAY):
                limited = seconds
            newest = repository.head
            recorded_files.save(
                self.folder, RecordedFiles(newest.id if newest else "", states, limited)
            )
            return newest if version is not None else None

    def versions(self, path: str | None = None) -> Iterator[VersionChanges]:
        """Yield the versions in which a file or folder changed, or all, the newest first."""
        repository = self._opened()
        if repository is None:
            return
        with closing(repository):
            for version in repository.versions():
                changes = tuple(
                    Change(changed, KINDS[kind])
                    for changed, kind in repository.changes(version)
                    if path is None or _is_below(changed, (path,))
                )
                if changes:
                    before = repository.version(version.parent) if version.parent else None
                    yield VersionChanges(version, changes, before.seconds if before else 0)

    def compare(self, old: Version | None, new: Version) -> tuple[Change, ...]:
        """Return the files that differ between two versions; None stands for an empty one."""
        repository = self._opened()
        if repository is None:
            return ()
        with closing(repository):
            found = repository.compare(old.id if old else "", new)
            return tuple(Change(path, KINDS[kind]) for path, kind in found)

    @property
    def newest(self) -> Version | None:
        """The newest version."""
        repository = self._opened()
        if repository is None:
            return None
        with closing(repository):
            return repository.head

    def parent(self, version: Version) -> Version | None:
        """Return the version before another one; None for the first."""
        repository = self._opened()
        if repository is None or not version.parent:
            return None
        with closing(repository):
            return repository.version(version.parent)

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
            blob = repository.find(version, path)
            return repository.read(blob) if blob else None

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
            recorded_files.save(self.folder, NOTHING)

    def check(self) -> int:
        """Read every version and the files of the newest one, and return the number of versions;
        HistoryDamaged if something cannot be read."""
        repository = self._opened()
        if repository is None:
            return 0
        with closing(repository):
            versions = list(repository.versions())
            for blob in set(repository.files(versions[0]).values()) if versions else ():
                repository.read(blob)
            return len(versions)

    def size(self) -> int:
        """Return the bytes that the history takes on disk."""
        repository = self._opened()
        if repository is None:
            return 0
        with closing(repository):
            return repository.size()

    def _limit(self, repository: Repository, newest: Version, is_due: bool) -> bool:
        """Remove the oldest versions beyond the retention; return whether that was looked at.

        Ages are looked at once a day, because that reads every version."""
        days, megabytes = self._retention
        is_large = bool(megabytes) and repository.size() > megabytes << 20
        if not is_large and not is_due:
            return False
        versions = list(repository.versions())
        oldest = newest.seconds - days * DAY if days else 0
        keep = {one.id for one in versions if one.seconds >= oldest} | {newest.id}
        if is_large:
            keep &= {one.id for one in versions[: max(1, len(versions) // 2)]}
        if len(keep) < len(versions):
            repository.rewrite(lambda _, data: data, keep=lambda one: one.id in keep)
            self._on_removed()
        return True

    def _opened(self) -> Repository | None:
        self._check_place()
        if not self.exists and not os.path.isdir(f"{self.folder}.old"):
            return None
        if not self.exists:
            with self._locked(LOCK_SECONDS):
                pass  # an interrupted replacement is finished
        return Repository(self.folder)

    def _check_place(self) -> None:
        if os.path.lexists(self.folder) and not self.exists:
            raise damaged(self.folder)  # another file has its name

    @contextmanager
    def _locked(self, seconds: float) -> Iterator[Repository | None]:
        with available(self.folder):
            make_private_folder(os.path.dirname(self.folder))
            descriptor = file_lock.acquire(f"{self.folder}.lock", seconds)
            if descriptor is None:
                yield None
                return
            busy = f"{self.folder}.busy"
            try:
                self._check_place()
                finish_replacement(self.folder)
                if os.path.exists(busy):  # a process was killed while it changed the repository
                    remove_leftovers(self.folder)
                os.close(open_private(busy, os.O_WRONLY | os.O_CREAT))
                with closing(Repository(self.folder)) as repository:
                    yield repository
                os.unlink(busy)
            finally:
                file_lock.release(descriptor)


def _added(
    repository: Repository,
    files: Sequence[FileState],
    read: Callable[[str], bytes | None],
    unread: list[str],
) -> Iterator[tuple[FileState, str]]:
    """Store files and yield their blobs; adds those that cannot be read to `unread`."""
    waiting, size = list[tuple[FileState, bytes]](), 0
    for file in files:
        try:
            data = read(file.path)
        except WorkspaceError:
            unread.append(file.path)
            continue
        if data is None:
            continue
        waiting.append((file, data))
        size += len(data)
        if size > MOST_BYTES_AT_ONCE:
            yield from _stored(repository, waiting)
            waiting, size = [], 0
    yield from _stored(repository, waiting)


def _stored(
    repository: Repository, files: Sequence[tuple[FileState, bytes]]
) -> Iterator[tuple[FileState, str]]:
    blobs = repository.add([data for _, data in files])
    yield from zip((file for file, _ in files), blobs, strict=True)


def _is_below(path: str, folders: Sequence[str]) -> bool:
    """Whether a path is one of these files or folders or below one; an empty one is the root."""
    return any(not one or path == one or path.startswith(f"{one}/") for one in folders)


def unified_diff(path: str, before: bytes | None, after: bytes | None) -> str:
    """Return a unified diff of two texts; None stands for no file."""
    old = (before or b"").decode("utf-8", "replace").splitlines(keepends=True)
    new = (after or b"").decode("utf-8", "replace").splitlines(keepends=True)
    lines = unified_lines(
        old,
        new,
        old_name="/dev/null" if before is None else f"a/{path}",
        new_name="/dev/null" if after is None else f"b/{path}",
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


def count_changed_lines(before: bytes | None, after: bytes | None) -> tuple[int, int]:
    """Return how many lines were added and removed; None stands for no file."""
    old, new = (before or b"").splitlines(), (after or b"").splitlines()
    if not old or not new:
        return len(new), len(old)
    changes = [one for one in line_changes(old, new) if one.kind != "equal"]
    added = sum(one.new_end - one.new_start for one in changes)
    return added, sum(one.old_end - one.old_start for one in changes)


def set_aside(folder: str) -> str:
    """Rename a damaged history, and return its new name."""
    aside = f"{folder}.damaged-{time.time_ns()}"
    os.rename(folder, aside)
    return aside
