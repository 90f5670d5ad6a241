"""Cut texts to what a model reads and pack them into requests that a service takes.

Token counts are estimates, so requests are filled only partly; the sender splits a request that is
too large nevertheless."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from clawmark.embed.media_file import MediaFile
from clawmark.embed.services.wire import Limits
from clawmark.text.chunking.tokens import estimate_tokens, well_formed

FILLED = 0.8
"""Numbers, code and rare languages have more tokens than estimated, by a fifth per request."""
RESPONSE_BYTES = 8 << 20
"""How large a response may become; four at a time are in memory."""
NUMBER_BYTES = 22
"""A number of a vector as JSON."""
USUAL_DIMS, USUAL_TOKENS = 4096, 400
"""The size of an unknown model's vectors, and of a chunk."""
IMAGE_TOKENS, AUDIO_TOKENS = 270, 32
"""About what an image counts, and a second of audio."""
USUAL_BYTE_RATE = 16_000
"""Bytes of a second of an MP3 with 128 kbit/s."""
BLANK = "."
"""Replaces a blank text, which services refuse."""


def most_texts(limits: Limits, dims: int) -> int:
    """Return how many texts one request may hold, by the sizes of request and response."""
    return max(1, min(limits.texts, RESPONSE_BYTES // (NUMBER_BYTES * (dims or USUAL_DIMS))))


def usual_texts(limits: Limits, dims: int) -> int:
    """Return how many chunks of the usual size make one request."""
    room = int(limits.tokens * FILLED) // USUAL_TOKENS if limits.tokens else limits.texts
    return max(1, min(most_texts(limits, dims), room))


def sendable(text: str, tokens: int) -> str:
    """Return the text as it is sent: well-formed, not blank and not too long."""
    text = well_formed(text)
    return cut(text, tokens) if text.strip() else BLANK


def cut(text: str, tokens: int) -> str:
    """Return the longest beginning of a text with at most this many tokens; 0 is no limit."""
    if not tokens or estimate_tokens(text) <= tokens:
        return text
    text = text[: 4 * tokens]
    length = (
        bisect_right(range(len(text) + 1), tokens, key=lambda end: estimate_tokens(text[:end])) - 1
    )
    return text[: max(1, length)]


def pack(texts: Sequence[str], limits: Limits, most: int) -> list[range]:
    """Return which texts go together, in order; one that fits nowhere goes alone."""
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


def media_tokens(file: MediaFile) -> int:
    """Return about how many tokens an image or audio file counts."""
    # The header of a WAV file has the bytes per second at this place.
    is_wav = file.mime == "audio/wav" and file.data[12:16] == b"fmt "
    rate = int.from_bytes(file.data[28:32], "little") if is_wav else 0
    tokens = file_tokens(file.mime, len(file.data), rate or USUAL_BYTE_RATE)
    return estimate_tokens(file.label) + tokens


def file_tokens(mime: str, size: int, byte_rate: int = USUAL_BYTE_RATE) -> int:
    """Return about how many tokens a file of this type and size counts, without its label."""
    if mime.startswith("image"):
        return IMAGE_TOKENS
    return AUDIO_TOKENS * (1 + size // byte_rate)
