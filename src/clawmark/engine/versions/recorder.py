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
from clawmark.model.values import Scan
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

    def record(
        self,
        reason: str,
        *,
        unlisted: Sequence[str] = (),
        wait: bool = False,
        scan: Scan | None = None,
    ) -> bool:
        """Add a version if the files changed since the last one; return whether one was added.

        `unlisted` are folders whose files are unknown now, besides those of the scan. With `wait`,
        a recording of another process is waited for. `scan` is a recent scan of the workspace that
        differs from the last version; without it, the disk is looked at."""
        exists = os.path.isdir(self._folder)
        # An extra path may have images below memory/, which are not recorded.
        if scan is None or self._workspace.extras():
            scan = scan_workspace(self._workspace.root, ())
            if exists and is_recorded(self._folder, scan.files):
                return False
        files = [file for file in scan.files if file.source == "memory"]
        if not exists and not files:
            return False
        missing = [*unlisted, *(failure.path for failure in scan.failures)]
        version = self._open_history().record(
            files, self._workspace.read_bytes, reason, wait=wait, unlisted=missing
        )
        return version is not None

    def record_safely(
        self, reason: str, *, unlisted: Sequence[str] = (), scan: Scan | None = None
    ) -> None:
        """Do the same without waiting; a failure is logged, and a damaged history is set aside."""
        try:
            self.record(reason, unlisted=unlisted, scan=scan)
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
