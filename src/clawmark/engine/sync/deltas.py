"""When a transcript that is being written to is worth indexing again.

In: how much it grew since it was indexed, measured on disk against the row in the index, so that
nothing has to be remembered and a restart changes nothing. Out: yes or no. Only syncs that the
watcher asks for go by this; every other one takes in whatever is there."""

from __future__ import annotations

from collections.abc import Mapping

from clawmark.config.schema import SessionDeltas
from clawmark.engine.sync.transcript_progress import decode
from clawmark.model.errors import WorkspaceError
from clawmark.model.values import FileRow, FileState, SyncPlan
from clawmark.workspace.transcripts.files import TranscriptFiles
from clawmark.workspace.transcripts.json_lines import count_lines


def is_due(grown_bytes: int, new_messages: int, settings: SessionDeltas) -> bool:
    """Whether growth is enough; a limit of 0 or less means that any is."""
    if grown_bytes <= 0:
        return False
    return grown_bytes >= settings.delta_bytes or new_messages >= settings.delta_messages


def leave_small_growth(
    plan: SyncPlan,
    indexed: Mapping[str, FileRow],
    sessions: TranscriptFiles,
    settings: SessionDeltas,
) -> tuple[SyncPlan, int]:
    """The plan without transcripts that grew by little, and how many those are."""

    def is_enough(state: FileState) -> bool:
        return state.source != "sessions" or _has_enough(
            state, indexed.get(state.path), sessions, settings
        )

    kept = plan._replace(
        add=tuple(filter(is_enough, plan.add)), check=tuple(filter(is_enough, plan.check))
    )
    return kept, plan.due - kept.due


def _has_enough(
    state: FileState, known: FileRow | None, sessions: TranscriptFiles, settings: SessionDeltas
) -> bool:
    reached = decode(known.progress) if known is not None else None
    read = reached.read if reached is not None else 0
    grown = state.size - read
    if grown < 0 or is_due(grown, 0, settings):
        return True  # it was replaced, or grew by enough bytes
    try:
        with sessions.open(state.path) as opened:
            return is_due(grown, count_lines(opened.fd, read, state.size), settings)
    except (OSError, WorkspaceError):
        return True  # the sync itself says what is wrong with it
