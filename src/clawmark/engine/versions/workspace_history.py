"""`Memory.history`: the versions of the memory files, their differences, restore and undo.

Each call records the files as they are now first, so that what is replaced can be restored."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from clawmark.engine.versions import undo_plan
from clawmark.engine.versions.recorder import VersionRecorder
from clawmark.engine.versions.undo_plan import CannotUndo, MoveBack, NotWritten, PutBack, digest_of
from clawmark.history.history import Change, History, VersionChanges, unified_diff
from clawmark.history.journal import Journal
from clawmark.history.line_history import LineVersion, recorded_states, trace_line
from clawmark.history.replaced import replaced_in
from clawmark.history.repository import Version
from clawmark.model.errors import (
    ClawmarkError,
    FilterError,
    HistoryDamaged,
    HistoryUnavailable,
    NothingToUndo,
    WorkspaceError,
)
from clawmark.model.provenance import JournalRecord, Origin
from clawmark.system.log_records import get_logger
from clawmark.text.moments import parse_moment
from clawmark.workspace import Workspace
from clawmark.workspace.places import is_markdown

_LOG = get_logger("clawmark.history")
RESTORE = Origin(actor="user", kind="restore", trust="owner")
UNDO = Origin(actor="user", kind="undo", trust="owner")
_ID = re.compile("[0-9a-f]{4,40}")


class HistoryEntry(NamedTuple):
    """A version, what changed in it, and the writes of the journal that led to it."""

    version: Version
    changes: tuple[Change, ...]
    writers: tuple[Origin, ...]
    """Who wrote the changed files since the version before; empty for edits by other programs."""


class FileChange(NamedTuple):
    """What a restore or an undo does to a file; None stands for no file."""

    path: str
    before: bytes | None
    after: bytes | None
    version: Version | None = None
    """The version that is restored."""
    write: JournalRecord | None = None
    """The write that is taken back."""
    is_recorded: bool = False
    """Whether the history has the content before, so that no other copy of it is kept."""
    moved_to: str = ""
    """The name that a renamed file or folder gets back; its content stays as it is."""

    @property
    def diff(self) -> str:
        """The change as a unified diff; empty if the file is already as wanted."""
        if self.moved_to:
            return f"rename from {self.path}\nrename to {self.moved_to}\n"
        return unified_diff(self.path, self.before, self.after)

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to write."""
        return self.before == self.after and not self.moved_to


class WorkspaceHistory:
    """The history of one workspace. Methods may be called by several threads."""

    def __init__(
        self,
        workspace: Workspace,
        history: History,
        journal: Journal,
        recorder: VersionRecorder | None,
        now: Callable[[], datetime],
    ) -> None:
        """Without a `recorder`, what was recorded before can be read, and nothing is added."""
        self._workspace = workspace
        self._history = history
        self._journal = journal
        self._recorder = recorder
        self._now = now

    def record(self, reason: str = "history") -> bool:
        """Add a version if the files changed since the last one; return whether one was added."""
        return self._recorder is not None and self._recorder.record(reason, wait=True)

    def versions(self, path: str | None = None) -> Iterator[HistoryEntry]:
        """Yield the versions in which a file or folder changed, or all, the newest first."""
        self._record_to_read()
        records = self._known_records()
        for found in self._history.versions(path):
            yield HistoryEntry(
                version=found.version, changes=found.changes, writers=writers_of(found, records)
            )

    def find(self, name: str) -> Version:
        """Return a version by the beginning of its id, or the last one of a day or before a time.

        Days and times are `2026-11-01`, `2026-11-01 14:30`, `7d`, "yesterday" and the like."""
        if _ID.fullmatch(name):
            return self._history.find(name)
        try:
            moment = parse_moment(name, self._now())
        except FilterError:
            raise FilterError(
                f"{name[:40]!a} is neither a version nor a day.",
                argument="version",
                hint="`clawmark history` lists the versions; a day is 2026-11-01, yesterday or 7d.",
            ) from None
        found = self._history.at(moment)
        if found is None:
            raise WorkspaceError(
                f"The history has no version from before {moment:%Y-%m-%d %H:%M}.",
                hint="`clawmark history` lists the versions.",
            )
        return found

    def last_change(self, path: str = "") -> tuple[Version | None, Version] | None:
        """Return the versions before and after the last change of a file, of a folder or of all;
        None if there is none.

        Changes that were not recorded yet are recorded, and are the last one."""
        before = self._history.newest
        self._record_to_read()
        newest = self._history.newest
        if newest is None:
            return None
        if before is not None and self.changes(before, newest, path):
            return before, newest
        last = next(self._history.versions(path or None), None)
        if last is None:
            return None
        return self._history.parent(last.version), last.version

    def newest(self) -> Version | None:
        """Record the files as they are, and return the newest version."""
        self._record_to_read()
        return self._history.newest

    def changes(self, old: Version | None, new: Version, path: str = "") -> tuple[Change, ...]:
        """Return the files that differ between two versions, or those of a file or folder."""
        return tuple(
            change
            for change in self._history.compare(old, new)
            if not path or change.path == path or change.path.startswith(f"{path.rstrip('/')}/")
        )

    def diff(self, path: str = "", old: str = "", new: str = "") -> str:
        """Return a unified diff of a file, of a folder or of everything.

        `old` and `new` name versions as for `find`. Without `new`, it is the files as they are now;
        without both, the last change."""
        if not old:
            found = self.last_change(path)
            return self.diff_between(*found, path) if found else ""
        newest = self.newest()
        start, end = self.find(old), self.find(new) if new else newest
        return self.diff_between(start, end, path) if end else ""

    def diff_of(self, version: Version, path: str = "") -> str:
        """Return what a version changed, as a unified diff."""
        return self.diff_between(self._history.parent(version), version, path)

    def diff_between(self, old: Version | None, new: Version, path: str = "") -> str:
        """Return a unified diff between two versions; None stands for an empty one."""
        found = self.changes(old, new, path)
        return "".join(self._history.diff(change.path, old, new) for change in found)

    def replaced(self, version: Version, path: str) -> tuple[tuple[str, str], ...]:
        """Return the lines that a version replaced in a file, each with the new line."""
        return replaced_in(self._history, version, path)

    def line(self, path: str, number: int) -> tuple[LineVersion, ...]:
        """Return the texts that a line of a file had, the newest first; lines count from 1."""
        self._record_to_read()
        found = trace_line(recorded_states(self._history, path), number, self._now().tzinfo)
        wanted = {one.version for one in found}
        records = self._known_records()
        writers = {
            one.version.id: writers_of(one, records)
            for one in self._history.versions(path)
            if one.version.id in wanted
        }
        return tuple(one._replace(writers=writers.get(one.version, ())) for one in found)

    def text_with_hash(self, path: str, digest: str) -> bytes | None:
        """Return an earlier or the present content of a file by the SHA-256 of its bytes; None if
        it is not known."""
        return self._find_text(path, digest)

    def contents(self, version: Version, path: str) -> tuple[bytes | None, bytes | None]:
        """Return a file before and after the change of a version; None for no file."""
        before = self._history.parent(version)
        return (
            self._history.read(before, path) if before else None,
            self._history.read(version, path),
        )

    def read(self, path: str, version: str) -> bytes | None:
        """Return a file as it was in a version; None if it did not exist."""
        return self._history.read(self.find(version), path)

    def plan_restore(self, path: str, version: str) -> FileChange:
        """Return what `restore` would do; WorkspaceError if the version has no such file."""
        self.record("before a restore")
        found = self.find(version)
        current = self._workspace.read_bytes(path)
        after = self._history.read(found, path)
        if after is None:
            raise WorkspaceError(
                f"{path} did not exist in version {found.id[:8]}.",
                hint=f"`clawmark history {path}` lists the versions that changed it.",
            )
        return FileChange(path=path, before=current, after=after, version=found)

    def restore(self, path: str, version: str) -> FileChange:
        """Write a file as it was in a version, also one that was deleted since."""
        return self.apply(self.plan_restore(path, version))

    def plan_undo(self, *, anyone: bool = False, write: str = "") -> FileChange:
        """Return what `undo` would do; NothingToUndo says why there is nothing."""
        records = list(self._journal.records())
        stopped = undo_plan.interrupted(records, self._workspace.read_bytes, self._workspace.exists)
        if stopped is not None and not write:
            return self._finished(stopped, records)
        self._record_if_possible()
        for record in undo_plan.candidates(records, anyone=anyone, write=write):
            current = self._content(record.path)
            match self._decide(record, current):
                case MoveBack(old):
                    return FileChange(
                        path=record.path, before=current, after=None, write=record, moved_to=old
                    )
                case PutBack(data):
                    return FileChange(
                        path=record.path,
                        before=current,
                        after=data,
                        write=record,
                        is_recorded=self._is_recorded(record.path, current),
                    )
                case CannotUndo(reason):
                    raise self._refusal(record, current, reason)
                case NotWritten():
                    continue
        what = f"write {write!r}" if write else "write" if anyone else "write of an agent"
        raise NothingToUndo(
            f"The journal has no {what} that can be taken back.",
            hint="" if anyone or write else "`--any` takes back the last write of anyone.",
        )

    def _decide(self, record: JournalRecord, current: bytes | None) -> undo_plan.Decision:
        if record.action == "rename":
            return undo_plan.decide_rename(record, self._workspace.exists)
        if record.action == "delete" and not is_markdown(record.path):
            return CannotUndo("it deleted a folder, and files are restored one by one")
        return undo_plan.decide(record, current, partial(self._find_text, record.path))

    def _content(self, path: str) -> bytes | None:
        """Return the content of a file; None if there is none, or if it is a folder."""
        return self._workspace.read_bytes(path) if is_markdown(path) else None

    def undo(self, *, anyone: bool = False, write: str = "") -> FileChange:
        """Take back the last write of an agent, an import or a plugin; with `anyone`, the last
        write at all; with `write`, the one with this id in the journal."""
        return self.apply(self.plan_undo(anyone=anyone, write=write))

    def apply(self, change: FileChange) -> FileChange:
        """Carry out a plan; WriteConflict if the file has changed since the plan was made."""
        if change.moved_to:
            undoes = change.write.id if change.write else ""
            self._workspace.rename(change.path, change.moved_to, origin=UNDO, undoes=undoes)
        elif change.before != change.after:
            self._workspace.put_back(
                change.path,
                change.after,
                digest_of(change.before),
                origin=UNDO if change.write else RESTORE,
                undoes=change.write.id if change.write else "",
                keep=not change.is_recorded,
            )
        elif change.version is not None:
            self._finish_restore(change)
        return change

    def _finish_restore(self, change: FileChange) -> None:
        """Note that a restore was done which was interrupted after it had written the file."""
        last = [one for one in self._journal.records() if one.path == change.path][-1:]
        for record in last:
            if (
                record.origin.kind == "restore"
                and not record.done
                and record.written.digest == digest_of(change.after)
            ):
                self._journal.finish(record)

    def _finished(self, stopped: JournalRecord, records: Sequence[JournalRecord]) -> FileChange:
        """Note that an undo was done which was interrupted after it had written the file."""
        self._journal.finish(stopped)
        content = self._content(stopped.path)
        write = next((one for one in records if one.id == stopped.undoes), None)
        return FileChange(path=stopped.path, before=content, after=content, write=write)

    def _record_to_read(self) -> None:
        """Record before a reading; versions can be read on a full or read-only disk too."""
        try:
            self.record()
        except HistoryUnavailable as error:
            _LOG.warning("The latest changes are not in the history. %s", error.message)

    def _known_records(self) -> list[JournalRecord]:
        """Return the records of the journal; none if it cannot be read, and then only who wrote a
        version is not known."""
        try:
            return list(self._journal.records())
        except ClawmarkError as error:
            _LOG.warning("Who wrote the versions is not known. %s", error.message)
            return []

    def _record_if_possible(self) -> None:
        try:
            self.record("before an undo")
        except (HistoryDamaged, HistoryUnavailable):
            return  # an undo needs the journal and the kept texts only

    def _is_recorded(self, path: str, content: bytes | None) -> bool:
        """Whether the newest version has this content of a file."""
        try:
            newest = self._history.newest
            return newest is not None and self._history.read(newest, path) == content
        except (HistoryDamaged, HistoryUnavailable):
            return False

    def _find_text(self, path: str, digest: str) -> bytes | None:
        """Return an earlier text of a file by its hash, from the kept texts or the history."""
        for text in self._workspace.kept_texts(path):
            if digest_of(text) == digest:
                return text
        for found in self._history.versions(path):
            data = self._history.read(found.version, path)
            if data is not None and digest_of(data) == digest:
                return data
        return None

    def _text_before(self, path: str, current: bytes | None) -> bytes | None:
        """Return the last recorded text of a file that is not the current one."""
        if not is_markdown(path):
            return None
        try:
            texts = (text for _, text in self._history.texts(path))
            return next((text for text in texts if text is not None and text != current), None)
        except (HistoryDamaged, HistoryUnavailable):
            return None

    def _refusal(self, record: JournalRecord, current: bytes | None, reason: str) -> NothingToUndo:
        written = datetime.fromisoformat(record.time)
        who = "user" if record.origin.actor == "user" else record.origin.actor
        before = self._text_before(record.path, current)
        return NothingToUndo(
            f"The last write ({record.origin.kind} by the {who}, {written:%Y-%m-%d %H:%M}, to "
            f"{record.path}) cannot be taken back: {reason}.",
            hint=f"`clawmark history {record.path}` lists its versions; `clawmark restore` brings "
            "one back.",
            diff=unified_diff(record.path, before, current) if before is not None else "",
        )


def writers_of(found: VersionChanges, records: Sequence[JournalRecord]) -> tuple[Origin, ...]:
    """Return the origins of the writes to the changed files between a version and the one before
    it, each kind once."""
    paths = {change.path for change in found.changes}
    origins = dict[Origin, None]()
    for record in records:
        if record.path in paths and record.done:
            written = int(datetime.fromisoformat(record.time).timestamp())
            if found.since <= written <= found.version.seconds:
                origins[record.origin._replace(session="", source="")] = None
    return tuple(origins)
