"""What a user just typed in; what the memory holds about it out, as one block of quoted data, or nothing.

Nobody asked for it, so it has to be worth its place: `runtime/worth.py` decides. No model is called: words and the static
vectors do. Blocks that were recalled before are not asked about again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clawmark.errors import ClawmarkError
from clawmark.runtime.kinds import is_private, kind_of
from clawmark.runtime.recall import recall_block, recalled
from clawmark.runtime.worth import BAR, says_something, worth_recalling
from clawmark.text.blocks import strip_recalled

if TYPE_CHECKING:
    from clawmark.memory import Memory

ITEMS = 3
SECONDS = 0.3
"""For bringing the index up to date; what takes longer is left to the next search."""

Open = Callable[[str | None], "Memory"]
"""(provider, None for the configured one) -> an open memory."""


def recall_for(opened: Open, prompt: str, session_key: str, items: int = ITEMS, bar: float = BAR) -> str:
    """The block for a message; empty when nothing clears the bar, or the session is not proven private."""
    asked = strip_recalled(prompt).strip()
    if not says_something(asked):
        return ""
    with opened("static") as memory:
        if not is_private(kind_of(session_key or f"agent:{memory.places.agent}:main")):
            return ""
        if memory.plan()[0].due:
            _catch_up(opened)
        found = memory.search(asked, max_results=items, min_score=0.0, explain=True, freshen=False)
    return recall_block([recalled(hit) for hit in worth_recalling(found, bar)])


def _catch_up(opened: Open) -> None:
    """Index what changed, as far as the time goes. With the configured embedders: others would take their vectors away."""
    with opened(None) as memory:
        try:
            memory.sync(instant_only=True, seconds=SECONDS)
        except ClawmarkError:
            return  # another process is at it, or the disk is full: the old answers are there
