"""What the two halves of a sync report, and how a file that is no text is remembered."""

from clawmark.reports import FileFailure
from clawmark.types import Degraded, Skipped
from clawmark.values import NamedTuple

NOT_TEXT = "not text"
"""Stands in place of the hash of a file that is no text: it is known, and not tried again until it changes."""


class TextReport(NamedTuple):
    """What the text half did."""

    added: int
    updated: int
    touched: int
    deleted: int
    chunks: int
    failures: tuple[FileFailure, ...]
    due_files: int
    skipped: tuple[Skipped, ...] = ()
    """What was left out of a file that was indexed."""
    unread: int = 0
    """Files that could not be read now: they were tried, and are still due."""


def added_up(one: TextReport, other: TextReport) -> TextReport:
    """Two reports as one."""
    return TextReport(
        one.added + other.added,
        one.updated + other.updated,
        one.touched + other.touched,
        one.deleted + other.deleted,
        one.chunks + other.chunks,
        one.failures + other.failures,
        one.due_files + other.due_files,
        one.skipped + other.skipped,
        one.unread + other.unread,
    )


class VectorReport(NamedTuple):
    """What filling one space did."""

    embedded: int
    reused: int
    due: int
    degraded: Degraded | None
    jobs: str = ""
    """What is to be said of batch jobs; see `SyncReport.jobs`."""
