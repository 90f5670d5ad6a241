"""Recall memory for a message of the user, as one block of quoted data.

The message did not ask for it, so `recall_rule` decides whether it is worth its place. No model is
called: keywords and static vectors are used. What the session start has shown is not repeated,
unless the file has changed since."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from clawmark.agent.prompt.recall import recall_block, recall_hits
from clawmark.agent.prompt.recall_rule import BAR, says_something, worth_recalling
from clawmark.agent.session.transcript_reader import first_time
from clawmark.composition.agent import search_scope, session_access, trust_gate
from clawmark.model.errors import ClawmarkError
from clawmark.model.values import Hit
from clawmark.text.untrusted.recalled_blocks import strip_recalled

if TYPE_CHECKING:
    from clawmark.agent.prompt.context import ContextFile
    from clawmark.memory import Memory

ITEMS = 3
MORE, MOST = 4, 12
"""How many times as many passages are looked at if some are left out, and up to how many."""
SECONDS = 0.3
"""For bringing the index up to date; the rest is left to the next search."""

Open = Callable[[str | None], "Memory"]
"""(provider, None for the configured one) → an open memory."""


def recall_for(
    opened: Open,
    prompt: str,
    session_key: str | None,
    items: int = ITEMS,
    bar: float = BAR,
    shown: Callable[[Memory], Sequence[ContextFile]] = lambda _: (),
) -> str:
    """Return the block for a message; empty if nothing reaches `bar` or the session is not private.

    `shown` returns the files that the model has already been shown; their passages are left out."""
    asked = strip_recalled(prompt).strip()
    if not says_something(asked):
        return ""
    with opened("static") as memory:
        settings = memory.settings
        is_searched = settings.memory_search.enabled and settings.plugins.has_memory
        access = session_access(settings, session_key)
        may_search = access.is_private and access.reads and search_scope(settings, session_key, "")
        if not is_searched or not may_search:
            return ""
        if memory.plan()[0].due:
            _catch_up(opened)
        files = {file.name: file.text for file in shown(memory)}
        gate, most = trust_gate(memory), items + len(files)
        while True:
            found = memory.search(
                asked, max_results=most, min_score=0.0, explain=True, freshen=False
            )
            worth = worth_recalling(found, bar)
            new = [hit for hit in worth if not _is_shown(hit, files.get(hit.path, ""))]
            chosen = recall_hits(new, gate, items, asked)
            if not chosen.left_out or most > MOST or len(found.hits) < most:
                return recall_block(chosen.items, left_out=chosen.left_out)
            most *= MORE  # what is left out must not take the place of other passages


def unchanged_since_the_start(
    files: Sequence[ContextFile], root: str, transcript: str
) -> tuple[ContextFile, ...]:
    """Return the files that have not changed since a session started; all if that is unknown."""
    start = first_time(os.path.expanduser(transcript))
    return tuple(
        file
        for file in files
        if start is None or _changed(os.path.join(root, file.name)) < start.timestamp()
    )


def _is_shown(hit: Hit, text: str) -> bool:
    """Check whether every line of a passage is in the shown text of its file."""
    return bool(text) and all(line.strip(" \t…") in text for line in hit.snippet.splitlines())


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return float("inf")


def _catch_up(opened: Open) -> None:
    """Index what changed, with the configured embedders, so that their vectors are kept."""
    with opened(None) as memory:
        try:
            memory.sync(instant_only=True, seconds=SECONDS)
        except ClawmarkError:
            return  # another process is indexing, or the disk is full: old answers are available
