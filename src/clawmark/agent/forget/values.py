"""What can be forgotten, where it was found, and what was done about it."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

PlaceKind: TypeAlias = Literal[
    "memory",
    "transcript",
    "session",
    "version",
    "history",
    "proposal",
    "journal",
    "copy",
    "source",
    "index",
]


class Selection(NamedTuple):
    """What to forget; exactly one field is set."""

    text: str = ""
    """Every entry that contains this text."""
    path: str = ""
    lines: str = ""
    """A citation such as `memory/2026-11-15.md#L3-L9`."""
    session: str = ""
    """The id of a session: its transcript, its notes, and what was written from it."""
    source: str = ""
    """An added folder, or an import such as `chatgpt`."""
    since: str = ""
    """What agents have written since a day."""


class FoundText(NamedTuple):
    """A place where a text lives."""

    kind: PlaceKind
    where: str
    """A citation, or the path of a file in the state folder."""
    text: str = ""
    """The entry that was found, in one line."""


class ForgetPlan(NamedTuple):
    """What `forget` will do. It holds plain text and is never stored."""

    selection: Selection
    found: tuple[FoundText, ...]
    entries: tuple[str, ...]
    """The hashes of the entries that are removed wherever they are."""
    local: tuple[tuple[str, str], ...]
    """(path, hash) of entries that are removed from one file only: too short to be told apart."""
    files: tuple[str, ...]
    """Memory files that are deleted."""
    paths: tuple[str, ...]
    """Memory files that had something of it, now or earlier."""
    transcripts: tuple[str, ...]
    """Transcripts that are deleted, by their absolute path."""
    sessions: tuple[str, ...]
    sources: tuple[str, ...]
    copies: tuple[str, ...]
    """Files of the state folder that repeat the text and are deleted."""
    journal: tuple[str, ...]
    """The hashes of the entries in the journal."""
    tombstones: tuple[str, ...]
    phrase_words: tuple[int, ...]
    unreachable: tuple[str, ...]
    """What cannot be removed, one sentence each."""
    keeps_transcripts: bool = False
    """Whether transcripts stay as they are, because an agent asked and not the user."""

    @property
    def is_empty(self) -> bool:
        return not self.found


class ForgetReport(NamedTuple):
    """What was removed."""

    files_deleted: int = 0
    files_changed: int = 0
    transcripts_deleted: int = 0
    transcripts_changed: int = 0
    versions: int = 0
    """Kept versions, edited copies and proposals that were changed or deleted."""
    history_rewritten: bool = False
    journal_records: int = 0
    vectors: int = 0
    """Cached vectors that were removed."""
    unreachable: tuple[str, ...] = ()
    resumed: bool = False
    """Whether this finished what an interrupted process had begun."""
