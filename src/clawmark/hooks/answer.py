"""An event of a coding agent in; the JSON object that the host reads out.

SessionStart gets the context, UserPromptSubmit what is recalled, PreCompact and SessionEnd leave a
note and say nothing. An empty object means: go on as if there were no hook. Errors are raised here;
that they never reach the host is the command's part."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from clawmark.agent.prompt.recall_rule import BAR
from clawmark.hooks.context import TOKENS, session_context
from clawmark.hooks.events import Event
from clawmark.hooks.notes import note_session_of
from clawmark.hooks.recall import ITEMS, recall_for, unchanged_since_the_start

if TYPE_CHECKING:
    from clawmark.agent.prompt.context import ContextFile
    from clawmark.memory import Memory


class Wishes(NamedTuple):
    """What was asked for on the command line; 0 stands for the usual."""

    session_key: str | None = None
    """None for the agent's main session."""
    tokens: int = 0
    items: int = 0
    bar: float | None = None


def answer(
    event: Event, opened: Callable[[str | None], Memory], wishes: Wishes
) -> dict[str, object]:
    """The answer to an event; `opened` opens the memory with a provider, None for the configured
    one.
    """
    if event.is_subagent:
        return {}
    if event.name == "UserPromptSubmit":
        bar = BAR if wishes.bar is None else wishes.bar
        items, shown = wishes.items or ITEMS, partial(_shown_files, event, wishes)
        return _with_context(
            event, recall_for(opened, event.prompt, wishes.session_key, items, bar, shown)
        )
    with opened("none") as memory:
        key = (
            f"agent:{memory.places.agent}:main"
            if wishes.session_key is None
            else wishes.session_key
        )
        if event.name == "SessionStart":
            return _with_context(event, session_context(memory, key, wishes.tokens or TOKENS).text)
        if os.path.isdir(memory.places.workspace):
            note_session_of(memory, event, key)
    return {}


def _shown_files(event: Event, wishes: Wishes, memory: Memory) -> tuple[ContextFile, ...]:
    """What the session start has put before the model; nothing outside a session."""
    if not (event.session_id or event.transcript):
        return ()
    shown = session_context(memory, wishes.session_key, wishes.tokens or TOKENS).files
    return unchanged_since_the_start(shown, memory.workspace.root, event.transcript)


def _with_context(event: Event, text: str) -> dict[str, object]:
    return (
        {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}}
        if text
        else {}
    )
