"""What the two halves of a sync report, and how a file that is no text is remembered."""

from typing import NamedTuple

from clawmark.model.reports import FileFailure
from clawmark.model.values import Degraded, Skipped

NOT_TEXT = "not text"
"""Stands in place of the hash of a file that is no text: it is known, and not tried again until it
changes.
"""


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
        added=one.added + other.added,
        updated=one.updated + other.updated,
        touched=one.touched + other.touched,
        deleted=one.deleted + other.deleted,
        chunks=one.chunks + other.chunks,
        failures=one.failures + other.failures,
        due_files=one.due_files + other.due_files,
        skipped=one.skipped + other.skipped,
        unread=one.unread + other.unread,
    )


class VectorReport(NamedTuple):
    """What filling one space did."""

    embedded: int
    reused: int
    due: int
    degraded: Degraded | None
    jobs: str = ""
    """What is to be said of batch jobs; see `SyncReport.jobs`."""
