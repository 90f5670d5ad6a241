"""Record the memory files of a workspace in its history.

Recorded are `MEMORY.md` and the files below `memory/`; transcripts, extra paths and added folders
are not. Whether there is anything to record is decided without opening the repository. A history
that cannot be written or read never fails its caller: a damaged one is set aside, and a new one is
begun."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from clawmark.history.recorded_files import is_recorded
from clawmark.model.errors import ClawmarkError, HistoryDamaged, reason_of
from clawmark.system.log_records import get_logger
from clawmark.workspace import Workspace
from clawmark.workspace.scan import scan_workspace

if TYPE_CHECKING:
    from clawmark.history.history import History

_LOG = get_logger("clawmark.history")


class VersionRecorder:
    """Records one workspace. Methods may be called by several threads and processes at once."""

    def __init__(
        self,
        workspace: Workspace,
        folder: str,
        open_history: Callable[[], History],
        note_failure: Callable[[], None] = lambda: None,
    ) -> None:
        self._workspace = workspace
        self._note_failure = note_failure
        self._folder = folder
        self._open_history = open_history

    def record(self, reason: str, *, unlisted: Sequence[str] = (), wait: bool = False) -> bool:
        """Add a version if the files changed since the last one; return whether one was added.

        `unlisted` are folders whose files are unknown now, besides those of the scan. With `wait`,
        a recording of another process is waited for."""
        scan = scan_workspace(self._workspace.root, ())
        missing = [*unlisted, *(failure.path for failure in scan.failures)]
        exists = os.path.isdir(self._folder)
        if is_recorded(self._folder, scan.files) if exists else not scan.files:
            return False
        version = self._open_history().record(
            scan.files, self._workspace.read_bytes, reason, wait=wait, unlisted=missing
        )
        return version is not None

    def record_safely(self, reason: str, *, unlisted: Sequence[str] = ()) -> None:
        """Do the same without waiting; a failure is logged, and a damaged history is set aside."""
        try:
            self.record(reason, unlisted=unlisted)
        except HistoryDamaged as error:
            self._note_failure()
            self._begin_again(error, reason)
        except (ClawmarkError, OSError) as error:
            self._note_failure()
            _LOG.warning("the history could not be recorded: %s.", reason_of(error))

    def _begin_again(self, damage: HistoryDamaged, reason: str) -> None:
        try:
            aside = set_aside(self._folder)
            _LOG.warning("%s It was set aside as %s.", damage, aside)
            self.record(reason)
        except (ClawmarkError, OSError) as error:
            _LOG.warning("the history could not be begun again: %s.", reason_of(error))


def set_aside(folder: str) -> str:
    """Rename a damaged history, and return its new name."""
    # Imported here: it needs dulwich, and a workspace without changes records nothing.
    from clawmark.history import history

    return history.set_aside(folder)
