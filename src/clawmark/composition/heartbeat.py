"""Build the heartbeat of a memory from its settings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from clawmark.agent.heartbeat.decide import CHECKLIST, Curation, HeartbeatSettings
from clawmark.agent.heartbeat.turn import HeartbeatParts, run_heartbeat
from clawmark.agent.models.completer import Completer
from clawmark.agent.prompt.context import ContextReader
from clawmark.agent.session.setup import needed_model
from clawmark.composition import redactor_of
from clawmark.composition.history.consolidation import consolidate_if_due
from clawmark.composition.history.trust import make_gate

if TYPE_CHECKING:
    from clawmark.config.paths import Places
    from clawmark.memory import Memory

__all__ = ["consolidate_if_due", "make_heartbeat", "run_heartbeat"]


def heartbeat_file(places: Places) -> str:
    """Return the file with what the last heartbeat has seen."""
    return os.path.join(os.path.dirname(places.conversations_dir), "heartbeat.json")


def make_heartbeat(
    memory: Memory, completer: Completer | None, model: str, *, apply: bool, days: int
) -> HeartbeatParts:
    """Return what a heartbeat of this memory works with."""
    settings = memory.settings
    options = settings.heartbeat
    session = f"agent:{memory.places.agent_id}:main:heartbeat"

    def checklist(day: str) -> str:
        context = ContextReader(memory.workspace.root).read("heartbeat", day)
        return next((file.text for file in context.files if file.name == CHECKLIST), "")

    def chosen() -> Completer:
        name = model or options.model
        return completer or needed_model(settings, os.environ, "run a heartbeat", name)

    return HeartbeatParts(
        settings=HeartbeatSettings(
            curation="apply" if apply else cast(Curation, options.curation),
            every_seconds=options.every * 60,
            prompt=options.prompt,
            ack_max_chars=options.ack_max_chars,
            days=days,
        ),
        workspace=memory.workspace,
        redactor=redactor_of(settings.memory_search),
        now=memory.now,
        completer=chosen,
        checklist=checklist,
        tools=lambda: memory.tools(session),
        state_file=heartbeat_file(memory.places),
        box=memory.review,
        needs_review=settings.review != "off",
        session=session,
        gate=make_gate(memory),
    )
