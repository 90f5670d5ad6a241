"""Values for reading, cutting and writing files; separate from `values` because a search does not
need them.
"""

from typing import NamedTuple

from clawmark.model.values import FileState, citation


class Document(NamedTuple):
    """One memory file as read: decoded text and the hash of its bytes."""

    state: FileState
    text: str
    """Lines joined by `\\n`; the byte order mark, one `\\r` per line end and NULs are removed. Line
    numbers are those of the file.
    """
    hash: str
    """SHA-256 hex of the file's bytes; of its path and type too for an image or audio file."""
    mime: str = ""
    """The type of an image or audio file, whose text is a label; empty for text."""


class Excerpt(NamedTuple):
    """Some lines of a memory file; empty and `missing` for a file that does not exist."""

    path: str
    text: str
    start: int
    lines: int
    total_lines: int
    truncated: bool
    """Whether there are fewer lines than requested, or than the file has if no number was given."""
    next_start: int | None
    """The line after the last one, if there is one."""
    missing: bool = False
    """The file does not exist. (An empty file has `total_lines` 0 and is not missing.)"""
    mime: str = ""
    """The type of an image or audio file, which is described in one sentence; empty for text."""
    note: str = ""
    """Why it may not be the latest text; empty if it is."""


class Written(NamedTuple):
    """Where a text was appended; it is on disk and fsynced."""

    path: str
    start_line: int
    end_line: int

    @property
    def citation(self) -> str:
        return citation(self.path, self.start_line, self.end_line)


class MemoryFile(NamedTuple):
    """One memory file in a listing."""

    path: str
    size: int
    """In bytes."""
    changed: str
    """When its content last changed, as ISO 8601 in the user's time zone."""
    entries: int | None
    """List items and paragraphs; None if the file cannot be read as text."""


class MemoryEntry(NamedTuple):
    """A list item or a paragraph of a memory file, with its lines (1-based, inclusive)."""

    path: str
    start_line: int
    end_line: int
    day: str
    """YYYY-MM-DD: of the file's name or of a heading, otherwise of the file's last change."""
    is_dated: bool
    """Whether the file says which day it is; False if it is the day of the file's last change."""
    heading: str
    """The headings above it, outermost first, joined by ` > `."""
    text: str

    @property
    def citation(self) -> str:
        return citation(self.path, self.start_line, self.end_line)


class DayAmount(NamedTuple):
    """How much the memory files hold of one day."""

    day: str
    """YYYY-MM-DD."""
    files: int
    size: int
    """In bytes."""


class Passage(NamedTuple):
    """The lines of a file that the index holds as one passage (1-based, inclusive)."""

    start_line: int
    end_line: int
    heading: str
    """The headings above it, outermost first, joined by ` > `."""


class IndexedFile(NamedTuple):
    """What the index holds of a file."""

    passages: tuple[Passage, ...]
    is_current: bool
    """Whether the file is as it was indexed; if not, the lines may have moved."""


class Chunk(NamedTuple):
    """A passage of a document with its exact lines (1-based, inclusive)."""

    start_line: int
    end_line: int
    text: str
    hash: str
    """SHA-256 hex of the text in UTF-8."""
    heading: str = ""
    """The headings above the passage, outermost first, joined by ` > `; searched with the passage
    but not part of it.
    """
    first_day: str = ""
    last_day: str = ""
    """The first and the last day the passage is about, YYYY-MM-DD; both empty when it has no date.
    """
