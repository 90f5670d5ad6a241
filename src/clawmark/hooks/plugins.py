"""Call the lifecycle hooks of memory plugins for the events of a coding agent."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from clawmark.agent.session.transcript_reader import recent_messages
from clawmark.composition import redactor_of
from clawmark.config.schema.plugins import MEMORY_CORE
from clawmark.hooks.events import Event
from clawmark.text.transcripts.records import TranscriptMessage

if TYPE_CHECKING:
    from clawmark.memory import Memory

MOST_MESSAGES = 200
"""Messages of a transcript in which the last turn is looked for."""


def fire_hooks(memory: Memory, event: Event, session_key: str) -> str | None:
    """Call the hooks of an event; return what a plugin recalls for a message of the user.

    None means that the plugins have no say in it: memory-core recalls, or it is another event."""
    hooks = memory.lifecycle(session_key)
    match event.name:
        case "SessionStart":
            hooks.session_start()
        case "UserPromptSubmit":
            if memory.slot.slot.recall.name != MEMORY_CORE:
                return hooks.before_agent_start(event.prompt)
        case "Stop":
            redactor = redactor_of(memory.settings.memory_search)
            transcript = os.path.expanduser(event.transcript)
            messages = recent_messages(transcript, redactor, most_messages=MOST_MESSAGES)
            hooks.agent_end([(one.role, one.text) for one in last_turn(messages)])
        case "PreCompact":
            hooks.before_compaction()
        case "SessionEnd":
            hooks.session_end()
    return None


def last_turn(messages: Sequence[TranscriptMessage]) -> list[TranscriptMessage]:
    """Return the last message of the user and what follows it; nothing if it has no answer."""
    starts = [number for number, message in enumerate(messages) if message.role == "user"]
    turn = list(messages[starts[-1] :]) if starts else []
    return turn if len(turn) > 1 else []
