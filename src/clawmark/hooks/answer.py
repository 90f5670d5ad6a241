"""Answer an event of a coding agent with the JSON object that the host reads.

SessionStart returns the context, UserPromptSubmit recalled memory; PreCompact and SessionEnd write
a session note and return an empty object. The hooks of memory plugins are called for all of them
and for Stop. Errors are raised; the command hides them from the host.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from clawmark.agent.prompt.recall_rule import BAR
from clawmark.hooks.context import TOKENS, session_context
from clawmark.hooks.events import Event
from clawmark.hooks.notes import note_session_of
from clawmark.hooks.plugins import fire_hooks
from clawmark.hooks.recall import ITEMS, recall_for, unchanged_since_the_start

if TYPE_CHECKING:
    from clawmark.agent.prompt.context import ContextFile
    from clawmark.memory import Memory


class HookOptions(NamedTuple):
    """Options of the command line; 0 means the default."""

    session_key: str | None = None
    """None for the agent's main session."""
    tokens: int = 0
    items: int = 0
    bar: float | None = None


def answer(
    event: Event, opened: Callable[[str | None], Memory], options: HookOptions
) -> dict[str, object]:
    """Return the answer; `opened` opens the memory with a provider, None for the configured one."""
    if event.is_subagent:
        return {}
    with opened("none") as memory:
        plugins = memory.settings.plugins
        main = f"agent:{memory.places.agent}:main"
        key = main if options.session_key is None else options.session_key
        text = _without_search(memory, event, key, options)
    if plugins.has_hooks:
        with opened(None) as memory:  # a plugin may need the configured embedder
            recalled = fire_hooks(memory, event, key)
        if recalled is not None:
            return _with_context(event, recalled)
    if event.name == "UserPromptSubmit" and plugins.has_memory:
        bar = BAR if options.bar is None else options.bar
        items, shown = options.items or ITEMS, partial(_shown_files, event, key, options)
        text = recall_for(opened, event.prompt, key, items, bar, shown)
    return _with_context(event, text)


def _without_search(memory: Memory, event: Event, key: str, options: HookOptions) -> str:
    """Return the context of a session that starts, or write the note of one that ends."""
    if event.name == "SessionStart":
        return session_context(memory, key, options.tokens or TOKENS).text
    if event.name in ("PreCompact", "SessionEnd") and os.path.isdir(memory.places.workspace):
        note_session_of(memory, event, key)
    return ""


def _shown_files(
    event: Event, key: str, options: HookOptions, memory: Memory
) -> tuple[ContextFile, ...]:
    """Return the files that the session start has shown; nothing outside a session."""
    if not (event.session_id or event.transcript):
        return ()
    shown = session_context(memory, key, options.tokens or TOKENS).files
    return unchanged_since_the_start(shown, memory.workspace.root, event.transcript)


def _with_context(event: Event, text: str) -> dict[str, object]:
    output = {"hookEventName": event.name, "additionalContext": text}
    return {"hookSpecificOutput": output} if text else {}
