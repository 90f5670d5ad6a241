"""The Markdown files of captured entries: read what changed, append an entry, remove one."""

from __future__ import annotations

import time
from typing import NamedTuple

from clawmark.backends.lancedb.entries import (
    Captured,
    format_entry,
    parse_entries,
    unique_entries,
)
from clawmark.model.documents import Written
from clawmark.model.errors import ClawmarkError, WriteConflict
from clawmark.model.provenance import Origin
from clawmark.model.sync_report import FileFailure
from clawmark.model.values import FileState
from clawmark.workspace import Workspace
from clawmark.workspace.daily import daily_header

CAPTURED = "memory/captured"
_DEPTH = 8
_SETTLED_NS = 2_000_000_000
"""A file that changed less than this before it was read is read again: the resolution of file times
could hide a second change."""
_ATTEMPTS = 10


class Look(NamedTuple):
    """What the files contain now."""

    entries: tuple[Captured, ...]
    files: tuple[str, ...]
    """The files that have entries."""
    failures: tuple[FileFailure, ...]
    """Files that could not be read; their entries are unknown, not deleted."""


class _Parsed(NamedTuple):
    state: FileState
    entries: tuple[Captured, ...]
    is_settled: bool


class CapturedFiles:
    """The captured entries of one workspace."""

    def __init__(self, workspace: Workspace, folder: str = CAPTURED) -> None:
        self.workspace = workspace
        self.folder = folder
        self._parsed: dict[str, _Parsed] = {}

    def look(self) -> Look:
        """Return all entries; only files that changed since the last call are read."""
        listed = self.workspace.list_folder(self.folder, _DEPTH) or []
        parsed: dict[str, _Parsed] = {}
        failures = []
        for path in sorted(entry.path for entry in listed if not entry.is_folder):
            try:
                one = self._parse(path)
            except ClawmarkError as error:
                failures.append(FileFailure(path, error.message))
                continue
            if one is not None:
                parsed[path] = one
        self._parsed = parsed
        entries = unique_entries(entry for one in parsed.values() for entry in one.entries)
        files = tuple(path for path, one in parsed.items() if one.entries)
        return Look(tuple(entries), files, tuple(failures))

    def append(self, entry: Captured, session_key: str) -> Written:
        """Write an entry to the end of its file, durably."""
        day = entry.created[:10]
        line = format_entry(entry, session_key)
        origin = Origin(actor="plugin", kind="capture", trust="agent", session=session_key)
        return self.workspace.append(entry.path, line, header=daily_header(day), origin=origin)

    def path_of(self, day: str) -> str:
        """Return the file of a day (`YYYY-MM-DD`)."""
        return f"{self.folder}/{day}.md"

    def remove(self, entry_id: str) -> Captured | None:
        """Remove the lines of an entry; return it, or None if no file has it."""
        removed = next((one for one in self.look().entries if one.id == entry_id), None)
        while removed is not None and self._remove_one(entry_id, removed.text):
            pass  # copies of the line have the same id
        return removed

    def _remove_one(self, entry_id: str, text: str) -> bool:
        """Remove the first line with this id and text; return whether there was one."""
        for _ in range(_ATTEMPTS):
            entries = self.look().entries
            found = next((one for one in entries if (one.id, one.text) == (entry_id, text)), None)
            if found is None:
                return False
            exact = self.workspace.read_exact(found.path)
            whole = exact.text if exact is not None else ""
            # The file may have changed after the look, which shows a NUL as U+FFFD.
            current = parse_entries(found.path, whole.replace("\0", "\ufffd"))
            if exact is None or not any(_is_at(one, found) for one in current):
                continue
            lines = whole.split("\n")
            kept = "\n".join([*lines[: found.start_line - 1], *lines[found.end_line :]])
            try:
                self.workspace.replace(found.path, kept, exact.hash)
            except WriteConflict:
                continue
            return True
        raise WriteConflict(
            "The captured file kept changing while an entry was removed.",
            path=self.folder,
            base_hash="",
            current_hash="",
            hint="Close the program that rewrites it and try again.",
        )

    def _parse(self, path: str) -> _Parsed | None:
        state = self.workspace.state_of(path)
        if state is None:
            return None
        known = self._parsed.get(path)
        if known is not None and known.is_settled and known.state == state:
            return known
        document = self.workspace.read_document(state)
        is_settled = time.time_ns() - document.state.mtime_ns > _SETTLED_NS
        return _Parsed(document.state, tuple(parse_entries(path, document.text)), is_settled)


def _is_at(one: Captured, other: Captured) -> bool:
    return (one.text, one.start_line, one.end_line) == (
        other.text,
        other.start_line,
        other.end_line,
    )
