"""What a user just typed in; what the memory holds about it out, as one block of quoted data, or
nothing.

Nobody asked for it, so it has to be worth its place: `runtime/worth.py` decides. No model is
called: words and the static vectors do. Blocks that were recalled before are not asked about again,
and what the session start has shown is not shown twice. That is computed from the files: those that
changed after the session began are not taken for shown."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from clawmark.agent.prompt.recall import recall_block, recalled
from clawmark.agent.prompt.recall_rule import BAR, says_something, worth_recalling
from clawmark.agent.prompt.session_files import is_private, kind_of
from clawmark.model.errors import ClawmarkError
from clawmark.model.values import Hit
from clawmark.text.transcripts.records import parse_line
from clawmark.text.untrusted.recalled_blocks import strip_recalled

if TYPE_CHECKING:
    from clawmark.agent.prompt.context import ContextFile
    from clawmark.memory import Memory

ITEMS = 3
SECONDS = 0.3
"""For bringing the index up to date; what takes longer is left to the next search."""
_LOOKED_AT = 1 << 20
"""Bytes at the beginning of a transcript in which its first date is looked for."""

Open = Callable[[str | None], "Memory"]
"""(provider, None for the configured one) -> an open memory."""


def recall_for(
    opened: Open,
    prompt: str,
    session_key: str | None,
    items: int = ITEMS,
    bar: float = BAR,
    shown: Callable[[Memory], Sequence[ContextFile]] = lambda _: (),
) -> str:
    """The block for a message; empty when nothing clears the bar, or the session is not proven
    private.

    `shown` gives the files that the model has before it, as far as they are shown; their passages
    are left out."""
    asked = strip_recalled(prompt).strip()
    if not says_something(asked):
        return ""
    with opened("static") as memory:
        if not memory.settings.memory_search.enabled or not is_private(kind_of(session_key)):
            return ""
        if memory.plan()[0].due:
            _catch_up(opened)
        files = {file.name: file.text for file in shown(memory)}
        found = memory.search(
            asked, max_results=items + len(files), min_score=0.0, explain=True, freshen=False
        )
    new = [hit for hit in found.hits if not _is_shown(hit, files.get(hit.path, ""))][:items]
    return recall_block([recalled(hit) for hit in worth_recalling(found, bar) if hit in new])


def unchanged_since_the_start(
    files: Sequence[ContextFile], root: str, transcript: str
) -> tuple[ContextFile, ...]:
    """The files that are as they were when a session began; without a dated transcript it has begun
    just now.
    """
    began = _began(os.path.expanduser(transcript))
    return tuple(
        file for file in files if began is None or _changed(os.path.join(root, file.name)) < began
    )


def _is_shown(hit: Hit, text: str) -> bool:
    """Whether every line of a passage is in the text that is shown of its file."""
    return bool(text) and all(line.strip(" \t…") in text for line in hit.snippet.splitlines())


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return float("inf")


def _began(transcript: str) -> float | None:
    """When the first dated line of a transcript was written; None when there is none."""
    if not os.path.isfile(transcript):
        return None
    with open(transcript, "rb") as file:
        lines = file.read(_LOOKED_AT).decode("utf-8", "replace").split("\n")
    for line in lines:
        try:
            return datetime.fromisoformat(str(parse_line(line).get("timestamp"))).timestamp()
        except (ValueError, OverflowError):
            continue
    return None


def _catch_up(opened: Open) -> None:
    """Index what changed, as far as the time goes.

    With the configured embedders: others would take their vectors away.
    """
    with opened(None) as memory:
        try:
            memory.sync(instant_only=True, seconds=SECONDS)
        except ClawmarkError:
            return  # another process is at it, or the disk is full: the old answers are there
