"""Texts on their way into requests: made sendable, cut to what a model reads, and packed to what a
service takes.

Pure. Lengths are estimates (four characters a token), so requests are filled to a part of the real
limit only; what is too large all the same is split by whoever sends it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from clawmark.embed.services.wire import Limits
from clawmark.text.chunking.tokens import estimate_tokens, well_formed

FILLED = 0.8
"""Numbers, code and rare languages have more tokens than the estimate: by a fifth in whole batches,
seldom by more.
"""
ANSWER_BYTES = 8 << 20
"""How large an answer may become.

Four of them at once are read into memory, and a kill loses what is on its way.
"""
NUMBER_BYTES = 22
"""A number of a vector as JSON."""
USUAL_DIMS, USUAL_TOKENS = 4096, 400
"""For a model whose size is not known; the size of a chunk."""
BLANK = "."
"""Stands for a text without any character to read: services refuse an empty one."""


def most_texts(limits: Limits, dims: int) -> int:
    """How many texts go into one request at the most, by what is asked and by what is answered."""
    return max(1, min(limits.texts, ANSWER_BYTES // (NUMBER_BYTES * (dims or USUAL_DIMS))))


def usual_texts(limits: Limits, dims: int) -> int:
    """How many chunks of the usual size make one request."""
    room = int(limits.tokens * FILLED) // USUAL_TOKENS if limits.tokens else limits.texts
    return max(1, min(most_texts(limits, dims), room))


def sendable(text: str, tokens: int) -> str:
    """The text as it is sent: whole characters, something to read, and no longer than a model
    reads.
    """
    text = well_formed(text)
    return cut(text, tokens) if text.strip() else BLANK


def cut(text: str, tokens: int) -> str:
    """The longest beginning of a text that has no more than this many tokens; 0 is no limit."""
    if not tokens or estimate_tokens(text) <= tokens:
        return text
    text = text[: 4 * tokens]  # a token has four characters at the most
    length = (
        bisect_right(range(len(text) + 1), tokens, key=lambda end: estimate_tokens(text[:end])) - 1
    )
    return text[: max(1, length)]


def pack(texts: Sequence[str], limits: Limits, most: int) -> list[range]:
    """Which texts go together, in their order: as many as fit; one that fits nowhere goes alone."""
    room = int(limits.tokens * FILLED) if limits.tokens else 0
    packs: list[range] = []
    start = filled = 0
    for number, text in enumerate(texts):
        size = estimate_tokens(text)
        if number > start and (number - start >= most or (room and filled + size > room)):
            packs.append(range(start, number))
            start, filled = number, 0
        filled += size
    return [*packs, range(start, len(texts))] if texts else []
