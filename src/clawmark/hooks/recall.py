"""What a user just typed in; what the memory holds about it out, as one block of quoted data, or nothing.

Nobody asked for it, so it has to be worth its place: only what clears a bar, and only for a message that says something.
No model is called: words and the static vectors decide. Blocks that were recalled before are not asked about again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clawmark.errors import ClawmarkError
from clawmark.runtime.kinds import is_private, kind_of
from clawmark.runtime.recall import recall_block, recalled
from clawmark.runtime.said import is_command
from clawmark.text.blocks import strip_recalled
from clawmark.text.query import clean_query, query_terms
from clawmark.types import Hit

if TYPE_CHECKING:
    from clawmark.memory import Memory

ITEMS = 3
BAR = 0.5
"""The least confidence. On 1,000 files it lets 44 of 50 answers through and keeps out neighbours that are only near in
meaning, which the score of a search does not; `bench/hooks.py` measures it."""
USUAL_WORDS = 8
"""Of a longer message no note holds so much: the bar sinks with the root of the number of words."""
FEWEST_WORDS, FEWEST_LETTERS = 2, 8
""""Yes, go on" recalls nothing."""
SECONDS = 0.3
"""For bringing the index up to date; what takes longer is left to the next search."""

Open = Callable[[str | None], "Memory"]
"""(provider, None for the configured one) -> an open memory."""


def recall_for(opened: Open, prompt: str, session_key: str, items: int = ITEMS, bar: float = BAR) -> str:
    """The block for a message; empty when nothing clears the bar, or the session is not proven private."""
    asked = strip_recalled(prompt).strip()
    words = [term.text for term in query_terms(clean_query(asked))]
    if is_command(asked) or len(words) < FEWEST_WORDS or sum(map(_letters, words)) < FEWEST_LETTERS:
        return ""
    with opened("static") as memory:
        if not is_private(kind_of(session_key or f"agent:{memory.places.agent}:main")):
            return ""
        if memory.plan()[0].due:
            _catch_up(opened)
        found = memory.search(asked, max_results=items, freshen=False)
    least = bar * min(1.0, (USUAL_WORDS / len(words)) ** 0.5)
    return recall_block([recalled(hit) for hit in found.hits if confidence(hit) >= least])


def confidence(hit: Hit) -> float:
    """How sure it is that a note is about a message: by the share of its telling words that the note holds, above all."""
    return hit.text_score + hit.vector_score / 4


def _letters(word: str) -> int:
    """How much a word says: a character of Chinese says as much as a short word."""
    return len(word) if word.isascii() else 4 * len(word)


def _catch_up(opened: Open) -> None:
    """Index what changed, as far as the time goes. With the configured embedders: others would take their vectors away."""
    with opened(None) as memory:
        try:
            memory.sync(instant_only=True, seconds=SECONDS)
        except ClawmarkError:
            return  # another process is at it, or the disk is full: the old answers are there
