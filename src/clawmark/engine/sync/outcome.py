"""What the text part and the vector part of a sync report."""

import operator
from typing import NamedTuple

from clawmark.model.sync_report import FileFailure
from clawmark.model.values import Degraded, Skipped

NOT_TEXT = "not text"
"""Replaces the hash of a file that is not text, so that it is not read again until it changes."""


class TextReport(NamedTuple):
    """What the text part did."""

    added: int = 0
    updated: int = 0
    touched: int = 0
    deleted: int = 0
    chunks: int = 0
    failures: tuple[FileFailure, ...] = ()
    due_files: int = 0
    skipped: tuple[Skipped, ...] = ()
    """What was left out of files that were indexed."""
    unread: int = 0
    """Files that could not be read and are still due."""


def add_reports(one: TextReport, other: TextReport) -> TextReport:
    """Add two reports."""
    return TextReport._make(map(operator.add, one, other))


class VectorReport(NamedTuple):
    """What filling one space did."""

    embedded: int = 0
    reused: int = 0
    due: int = 0
    degraded: Degraded | None = None
    jobs: str = ""
    """A message about batch jobs; see `SyncReport.jobs`."""
    refused: tuple[Skipped, ...] = ()
    """Images and audio files that the service does not take."""
