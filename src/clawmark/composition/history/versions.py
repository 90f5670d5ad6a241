"""Open the history of a workspace: what records it, and what reads it and takes writes back."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from clawmark.composition import event_counts, history_folder
from clawmark.composition.history.records import as_of_folder, make_journal
from clawmark.config.paths import Places
from clawmark.config.schema import Settings
from clawmark.engine.versions.recorder import VersionRecorder, set_aside
from clawmark.model.errors import ClawmarkError, HistoryDamaged
from clawmark.model.reports import Finding
from clawmark.workspace import Workspace

if TYPE_CHECKING:
    from clawmark.engine.versions.workspace_history import WorkspaceHistory
    from clawmark.history.history import History


def open_history(places: Places, settings: Settings) -> History:
    """Return the history of an agent's workspace, which need not exist yet."""
    # Imported here, as below: it needs dulwich, and a workspace without changes records nothing.
    from clawmark.history.history import History, Retention

    options = settings.history
    retention = Retention(days=options.max_days, megabytes=options.max_mb)

    def remove_indexes() -> None:
        from clawmark.backends.as_of.kept import remove_vanished

        remove_vanished(as_of_folder(places), opened.has)

    opened = History(history_folder(places), retention, on_removed=remove_indexes)
    return opened


def make_recorder(
    places: Places, settings: Settings, workspace: Workspace
) -> VersionRecorder | None:
    """Return what records a workspace; None if the settings say that nothing is recorded."""
    if not settings.history.enabled:
        return None
    return VersionRecorder(
        workspace=workspace,
        folder=history_folder(places),
        open_history=lambda: open_history(places, settings),
        note_failure=lambda: event_counts(places).add("historyFailures"),
    )


def make_workspace_history(
    places: Places, settings: Settings, workspace: Workspace, now: Callable[[], datetime]
) -> WorkspaceHistory:
    """Return the history that `Memory.history` offers."""
    from clawmark.engine.versions.workspace_history import WorkspaceHistory

    return WorkspaceHistory(
        workspace=workspace,
        history=open_history(places, settings),
        journal=make_journal(places, settings),
        recorder=make_recorder(places, settings, workspace),
        now=now,
    )


def history_findings(places: Places, settings: Settings, *, fix: bool) -> list[Finding]:
    """Report a history that cannot be read, and those that were set aside; `fix` sets it aside."""
    folder = history_folder(places)
    findings = list[Finding]()
    if os.path.lexists(folder):
        findings.append(_examine(places, settings, folder, fix=fix))
    above = os.path.dirname(folder)
    name = f"{os.path.basename(folder)}.damaged-"
    aside = sorted(one for one in _names(above) if one.startswith(name))
    if aside:
        findings.append(
            Finding(
                level="note",
                what=f"Damaged histories that were set aside: {len(aside)} "
                f"({os.path.join(above, aside[-1])}).",
                next_step="Delete them if you do not need them; git may still read parts of them.",
            )
        )
    return findings


def _examine(places: Places, settings: Settings, folder: str, *, fix: bool) -> Finding:
    try:
        count = open_history(places, settings).check()
    except HistoryDamaged as error:
        if not fix:
            return Finding(level="problem", what=error.message, next_step=error.hint)
        what = f"{error.message} It was set aside as {set_aside(folder)}."
        return Finding(level="problem", what=what, next_step="", fixed=True)
    except ClawmarkError as error:
        return Finding(level="problem", what=error.message, next_step=error.hint)
    return Finding(level="ok", what=f"The history is sound (versions: {count:,}).", next_step="")


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
