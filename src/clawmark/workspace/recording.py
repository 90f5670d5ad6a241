"""Record each write of a workspace in the journal, before and after it.

A journal that fails loses labels, never memory: the text is written, a warning is logged and the
failure is counted for `status` and `doctor`. Text from outside is the exception. It is not written
without its label, because it would then be taken for the user's own; its writers can try again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from clawmark.model.errors import ClawmarkError, WorkspaceError, reason_of
from clawmark.model.provenance import (
    BY_USER,
    NO_BYTES,
    Action,
    BytesWritten,
    JournalRecord,
    Origin,
    WriteJournal,
)

if TYPE_CHECKING:
    from clawmark.system.counters import SharedCounts


class WriteRecorder:
    """Opens the journal of a workspace for each write; without a journal it does nothing."""

    def __init__(
        self, journal: Callable[[], WriteJournal] | None, counts: SharedCounts | None = None
    ) -> None:
        self.journal = journal
        self.counts = counts

    def write(
        self,
        origin: Origin | None,
        path: str,
        text: str = "",
        *,
        action: Action,
        header: str = "",
        outside: str = "",
        moved_from: str = "",
        written: BytesWritten = NO_BYTES,
        undoes: str = "",
        is_file: bool = True,
    ) -> Recording:
        """Return the recording of one write; `outside` is the part of the text from outside."""
        return Recording(
            self,
            origin or BY_USER,
            path,
            text,
            action=action,
            header=header,
            outside=outside,
            moved_from=moved_from,
            written=written,
            undoes=undoes,
            is_file=is_file,
        )


class Recording:
    """The record of one write. `start` is called when nothing but the write itself can fail."""

    def __init__(
        self,
        recorder: WriteRecorder,
        origin: Origin,
        path: str,
        text: str,
        *,
        action: Action,
        header: str,
        outside: str,
        moved_from: str,
        written: BytesWritten,
        undoes: str,
        is_file: bool,
    ) -> None:
        self._recorder = recorder
        self._origin = origin
        self._path = path
        self._text = text
        self._action = action
        self._header = header
        self._outside = outside
        self._moved_from = moved_from
        self._written = written
        self._undoes = undoes
        self._is_file = is_file
        self._record: JournalRecord | None = None

    def start(self, current: bytes = b"") -> None:
        """Record durably what is about to be written over or after the current bytes."""
        if self._recorder.journal is None or self._record is not None:
            return
        is_append = self._action == "append"
        text = f"{self._header}\n{self._text}" if is_append and not current else self._text
        old = "" if is_append else current.decode("utf-8", "replace")
        written = self._written
        if self._is_file and self._action == "delete" and not written.base:
            written = BytesWritten(base=hashlib.sha256(current).hexdigest())
        try:
            self._record = self._recorder.journal().begin(
                self._origin,
                self._path,
                text,
                old=old,
                outside=self._outside,
                action=self._action,
                moved_from=self._moved_from,
                written=written,
                undoes=self._undoes,
            )
        except (ClawmarkError, OSError) as error:
            self._failed(error)

    def finish(
        self, *, before: int = -1, after: int = -1, written: BytesWritten = NO_BYTES
    ) -> None:
        """Record that it was written; for an append, the sizes of the file around it."""
        if self._recorder.journal is None or self._record is None:
            return
        try:
            self._recorder.journal().finish(
                self._record, before=before, after=after, written=written
            )
        except (ClawmarkError, OSError) as error:  # a sync finds out whether it was written
            self._warn(error)

    def _failed(self, error: Exception) -> None:
        """Count and log why there is no record; text from outside is refused."""
        self._warn(error)
        if self._origin.trust == "external" or self._outside:
            raise WorkspaceError(
                f"{self._path} was not written: the journal cannot record that the text came from "
                f"outside ({reason_of(error)}).",
                hint="Check the state folder and its disk, then try again.",
            ) from error

    def _warn(self, error: Exception) -> None:
        if self._recorder.counts is not None:
            self._recorder.counts.add("journalErrors")
        # Imported here: a write that is recorded logs nothing.
        from clawmark.system.log_records import get_logger

        get_logger("clawmark.journal").warning(
            "The journal has no record of a write to %s: %s", self._path, reason_of(error)
        )
