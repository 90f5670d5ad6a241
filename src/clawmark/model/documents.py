"""Values of what is read, cut and written: like those in `types`, apart because no search needs
them.
"""

from typing import NamedTuple

from clawmark.model.values import FileState, citation


class Document(NamedTuple):
    """One memory file as read: decoded text and the hash of its bytes."""

    state: FileState
    text: str
    """Lines joined by `\\n`; a byte order mark, one `\\r` per line end and NULs are gone, so line
    numbers are the file's.
    """
    hash: str
    """SHA-256 hex of the file's bytes."""


class Excerpt(NamedTuple):
    """Some lines of a memory file; one that does not exist is an empty excerpt with `missing` set."""

    path: str
    text: str
    start: int
    lines: int
    total_lines: int
    truncated: bool
    """Less came back than was asked for, or than there is when no number was asked for."""
    next_start: int | None
    """The line that follows the last one given, when there is one."""
    missing: bool = False
    """There is no such file; a file without text has `total_lines` 0 and is not missing."""


class Written(NamedTuple):
    """Where an acknowledged append went: on disk, fsynced, before this value exists."""

    path: str
    start_line: int
    end_line: int

    @property
    def citation(self) -> str:
        return citation(self.path, self.start_line, self.end_line)


class Chunk(NamedTuple):
    """A passage of a document with its exact lines (1-based, inclusive)."""

    start_line: int
    end_line: int
    text: str
    hash: str
    """SHA-256 hex of the text in UTF-8."""
    heading: str = ""
    """The headings above the passage, outermost first, joined by ` > `; searched with the passage,
    never shown in it.
    """
    first_day: str = ""
    last_day: str = ""
    """The first and the last day the passage is about, YYYY-MM-DD; both empty when it has no date.
    """
