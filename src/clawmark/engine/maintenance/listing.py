"""List the memory files, and find their newest entries.

The day of an entry is in the name of its file or in a heading above it. A file without either does
not say which of its entries are new: its last ones count, with the day the file changed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from clawmark.model.documents import DayAmount, MemoryEntry, MemoryFile
from clawmark.model.errors import WorkspaceError
from clawmark.model.values import NO_FILTERS, FileState, Filters
from clawmark.text.dates import date_of
from clawmark.text.entries import TextEntry, split_entries
from clawmark.text.filters import make_filters
from clawmark.text.globs import path_matcher
from clawmark.workspace import Workspace

MOST_UNDATED = 3
"""Entries of one file that are listed by the day of its last change."""


class _Dated(NamedTuple):
    """A file with the day in its name."""

    state: FileState
    named: str


class Listing:
    """The memory files of a workspace, as they are at one time."""

    def __init__(self, workspace: Workspace, now: datetime) -> None:
        self.workspace = workspace
        self.now = now
        self.today = now.date().isoformat()

    def files(self, patterns: Sequence[str]) -> tuple[MemoryFile, ...]:
        """Return the files that match one of the patterns, all of them without patterns."""
        is_wanted = matcher(patterns)
        listed = list[MemoryFile]()
        for state in self._memory_files():
            if is_wanted(state.path):
                entries = self._entries(state)
                listed.append(
                    MemoryFile(
                        path=state.path,
                        size=state.size,
                        changed=self._changed(state).isoformat(timespec="seconds"),
                        entries=None if entries is None else len(entries),
                    )
                )
        return tuple(sorted(listed, key=lambda file: (file.path != "MEMORY.md", file.path)))

    def recent(self, count: int, *, since: str, until: str, path: str) -> tuple[MemoryEntry, ...]:
        """Return the newest entries within the filters, newest first."""
        filters = make_filters(
            since=since, until=until, path=path, source="", today=lambda: self.today
        )
        is_wanted = matcher((filters.path,) if filters.path else ())
        files = [
            _Dated(state, date_of(state.path))
            for state in self._memory_files()
            if is_wanted(state.path)
        ]
        undated = [file for file in files if not file.named or file.named > self.today]
        dated = [file for file in files if file.named and file.named <= self.today]
        # Every undated file is read: a heading in it may have any day. Of the others, the newest.
        found = [one for file in undated for one in self._of_file(file, filters)]
        dated.sort(key=lambda file: file.named, reverse=True)
        oldest = ""
        for file in dated:
            if filters.until and file.named > filters.until:
                continue  # all of its entries are of that day
            if file.named < max(oldest, filters.since):
                break
            found += self._of_file(file, filters)
            if not oldest and sum(entry.day >= file.named for _, entry in found) >= count:
                oldest = file.named  # the other files of this day are still read
        found.sort(
            key=lambda one: (one[1].day, one[0], one[1].path, one[1].start_line), reverse=True
        )
        return tuple(entry for _, entry in found[:count])

    def days(self) -> tuple[DayAmount, ...]:
        """Return how much the files hold of each day, the oldest first.

        A file with a day in its name counts with its size and is not read."""
        files, sizes = Counter[str](), Counter[str]()
        for state in self._memory_files():
            named = date_of(state.path)
            if named and named <= self.today:
                files[named] += 1
                sizes[named] += state.size
                continue
            found = self._of_file(_Dated(state, named), NO_FILTERS)
            files.update({entry.day for _, entry in found})
            for _, entry in found:
                sizes[entry.day] += len(entry.text.encode("utf-8", "replace"))
        return tuple(DayAmount(day, files[day], sizes[day]) for day in sorted(files))

    def _of_file(self, file: _Dated, filters: Filters) -> list[tuple[datetime, MemoryEntry]]:
        """Return the entries of a file that may be among the newest, with its last change."""
        changed = self._changed(file.state)
        changed_day = min(changed.date().isoformat(), self.today)
        kept, undated = list[tuple[datetime, MemoryEntry]](), 0
        for entry in reversed(self._entries(file.state) or ()):
            day = file.named or entry.day
            is_dated = bool(day) and day <= self.today
            undated += not is_dated
            if not is_dated and undated > MOST_UNDATED:
                continue
            day = day if is_dated else changed_day
            if (filters.since or day) <= day <= (filters.until or day):
                kept.append((changed, _entry(file.state.path, entry, day, is_dated)))
        return kept

    def _memory_files(self) -> list[FileState]:
        return [state for state in self.workspace.scan().files if state.source == "memory"]

    def _entries(self, state: FileState) -> list[TextEntry] | None:
        """Return the entries of a file; None if it cannot be read."""
        try:
            return split_entries(self.workspace.read_document(state).text)
        except (WorkspaceError, OSError):
            return None

    def _changed(self, state: FileState) -> datetime:
        """Return when the content of a file last changed.

        A scan has the time of any change, such as a restored backup. A link on the way is harmless:
        nothing is opened."""
        try:
            nanoseconds = os.lstat(self.workspace.absolute(state.path)).st_mtime_ns
        except (OSError, WorkspaceError):
            nanoseconds = state.mtime_ns
        return datetime.fromtimestamp(nanoseconds / 1e9, self.now.tzinfo)


def matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return whether a path matches a pattern, or is in a folder that does."""
    ways = [
        path_matcher(way) for pattern in patterns for way in (pattern, pattern.rstrip("/") + "/")
    ]
    return lambda path: not ways or any(matches(path) for matches in ways)


def _entry(path: str, entry: TextEntry, day: str, is_dated: bool) -> MemoryEntry:
    return MemoryEntry(
        path=path,
        start_line=entry.start_line,
        end_line=entry.end_line,
        day=day,
        is_dated=is_dated,
        heading=entry.heading,
        text=entry.text,
    )
