"""Build what answers from an earlier version of the memory files."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from clawmark.backends.as_of.files import open_version
from clawmark.backends.as_of.index import AsOfIndexes
from clawmark.composition import history_folder
from clawmark.composition.history.records import as_of_folder
from clawmark.history.history import History, missing_history
from clawmark.history.replaced import Text, replacements
from clawmark.history.repository import Version
from clawmark.model.documents import Excerpt
from clawmark.model.errors import (
    ClawmarkError,
    ConfigError,
    FilterError,
    HistoryDamaged,
    VersionMissing,
    WorkspaceError,
)
from clawmark.model.values import OWN_MEMORY, Found, Hit, Query
from clawmark.model.versions import AsOf, Replaced
from clawmark.store.sqlite.store import SqliteStore
from clawmark.text.filters import parse_as_of

if TYPE_CHECKING:
    from clawmark.config.paths import Places
    from clawmark.engine.parts import IndexParts
    from clawmark.memory import Memory
    from clawmark.model.sync_report import Progress, SyncReport

ATTEMPTS = 3


def open_history(places: Places) -> History:
    """Return the versions of an agent's workspace."""
    return History(history_folder(places))


class EarlierMemory:
    """The memory files of one agent at an earlier time."""

    def __init__(self, memory: Memory, parts: IndexParts, given: str) -> None:
        self._memory = memory
        self._parts = parts
        self._now = memory.now()
        self._time = parse_as_of(given, self._now)
        self._history = open_history(memory.places)

    def today(self) -> str:
        """Return the day that counts as today."""
        return self._time.day

    def search(self, query: Query) -> Found:
        """Answer a query from the memory files of that time."""
        indexes = self._indexes()
        if query.filters.source not in ("", "memory"):
            raise FilterError(
                f"asOf searches memory files; the source {query.filters.source[:40]!a} has no "
                f"history.",
                argument="source",
                hint="Leave source or asOf out.",
            )
        if query.filters.space not in ("", OWN_MEMORY):
            raise FilterError(
                f"The space {query.filters.space[:40]!a} has no history: asOf searches the memory "
                f"files of the workspace.",
                argument="space",
                hint="Leave space or asOf out.",
            )
        query = query._replace(filters=query.filters._replace(space=""))
        for _ in range(ATTEMPTS):
            version = self._version()
            try:
                found = indexes.search(query, version)
            except (HistoryDamaged, WorkspaceError):
                if self._history.has(version.id):
                    raise
                continue  # the history was rewritten, and has another version of that time
            return found._replace(as_of=self._mark(version))
        raise self._missing()

    def sync(self, progress: Callable[[Progress], None] | None) -> SyncReport:
        """Build the index of that time with all its vectors."""
        return self._indexes().build(self._version(), progress)

    def read(self, path: str, start: int | None, lines: int | None, max_chars: int) -> Excerpt:
        """Return lines of a memory file as it was at that time."""
        root = self._parts.workspace.root
        with open_version(root, self._history, self._version()) as files:
            return files.read_lines(path, start, lines, max_chars=max_chars)

    def _indexes(self) -> AsOfIndexes:
        options = self._memory.settings.memory_search
        if "memory" not in options.sources:
            raise ConfigError(
                "Only memory files have a history, and memorySearch.sources leaves them out.",
                key="memorySearch.sources",
                hint='Add "memory" to it to search earlier days.',
            )
        return AsOfIndexes(
            folder=as_of_folder(self._memory.places),
            history=self._history,
            root=self._parts.workspace.root,
            main=self._parts,
            open_store=lambda path: SqliteStore(
                path, vector_engine=options.store.vector.engine, cache_entries=0
            ),
        )

    def _record(self) -> None:
        """Record the files as they are, if the time that is asked for has not passed yet."""
        if self._time.end > self._now:
            # An answer from the last version is better than none.
            with suppress(ClawmarkError, OSError):
                self._memory.history.record("before a search of today")

    def _version(self) -> Version:
        self._record()
        version = self._history.at(self._time.end)
        if version is None:
            raise self._missing()
        return version

    def _missing(self) -> VersionMissing:
        versions = [one.version for one in self._history.versions()]
        if not versions:
            return missing_history()
        first = self._shown(versions[-1])
        return VersionMissing(
            f"The history begins on {first[:10]} at {first[11:16]}; there is no version of "
            f"{self._time.shown}.",
            argument="asOf",
            hint="Ask for a later day.",
        )

    def _mark(self, version: Version) -> AsOf:
        return AsOf(asked=self._time.shown, version=version.id, recorded=self._shown(version))

    def _shown(self, version: Version) -> str:
        return in_zone_of(self._now, version.seconds)


def add_replaced(memory: Memory, parts: IndexParts, found: Found) -> tuple[Hit, ...]:
    """Return the hits of an answer with what their lines have replaced."""
    history = open_history(memory.places)
    if not history.exists:
        return found.hits
    zone = memory.now().tzinfo
    at = history.find(found.as_of.version) if found.as_of is not None else None

    def replaced(hit: Hit) -> tuple[Replaced, ...]:
        present = None
        if at is None:
            state = parts.workspace.state_of(hit.path)
            if state is None or state.source != "memory" or hit.mime:
                return ()
            present = Text(parts.workspace.read_document(state).text, state.mtime_ns / 1e9)
        return replacements(
            history, hit.path, hit.start_line, hit.end_line, present=present, at=at, zone=zone
        )

    return tuple(hit._replace(replaced=replaced(hit)) for hit in found.hits)


def in_zone_of(now: datetime, seconds: int) -> str:
    """Return a time as ISO 8601 in the user's time zone."""
    return datetime.fromtimestamp(seconds, UTC).astimezone(now.tzinfo).isoformat()
