"""What the two halves of a sync report, and how a file that is no text is remembered."""

from typing import NamedTuple

from clawmark.reports import FileFailure
from clawmark.types import Degraded

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


class VectorReport(NamedTuple):
    """What filling one space did."""

    embedded: int
    reused: int
    due: int
    degraded: Degraded | None
