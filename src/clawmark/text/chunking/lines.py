"""The line chunker of OpenClaw 2026.3, byte for byte.

Lines, text and hash of each chunk equal those in an OpenClaw index, so that its vectors can be
reused. Lengths are UTF-16 units. Its oddities are kept: slices of one long line are joined with
newlines the file does not have, an overlap can push a chunk to twice the limit, and a cut may fall
inside a surrogate pair (stored as U+FFFD). Blank chunks are kept; `chunk_text` drops them.

`weigh_cjk` follows the later releases, where a CJK character weighs as much as four Latin ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from hashlib import sha256

from clawmark.model.documents import Chunk
from clawmark.text.chunking.tokens import utf16_length, well_formed

_CJK = re.compile("[\u2e80-\ua4ff\uac00-\ud7af\uf900-\ufaff]+")
_RARE_CJK = re.compile("[\U00020000-\U0002fa1f]+")


def chunk_lines(text: str, tokens: int, overlap: int, weigh_cjk: bool = True) -> list[Chunk]:
    """Cut a text into chunks of about `tokens` tokens that overlap by about `overlap` tokens."""
    limit = max(32, tokens * 4)
    carried = max(0, overlap * 4)
    length = weighted_length if weigh_cjk else utf16_length
    chunks: list[Chunk] = []
    buffer: list[tuple[int, int, str]] = []  # line number, cost, segment
    held = 0
    for number, line in enumerate(text.split("\n"), 1):
        for segment in _segments(line, limit, tokens, weigh_cjk):
            cost = length(segment) + 1
            if buffer and held + cost > limit:
                chunks.append(_chunk(buffer))
                buffer = _tail(buffer, carried)
                held = sum(part[1] for part in buffer)
            buffer.append((number, cost, segment))
            held += cost
    chunks.append(_chunk(buffer))
    return chunks


def weighted_length(text: str) -> int:
    """Return the UTF-16 units, counting every CJK character as four."""
    if text.isascii():
        return len(text)
    return utf16_length(text) + 3 * _count(_CJK, text) + 2 * _count(_RARE_CJK, text)


def _count(pattern: re.Pattern[str], text: str) -> int:
    return len(text) - len(pattern.sub("", text))


def _segments(line: str, limit: int, tokens: int, weigh_cjk: bool) -> Iterator[str]:
    # No character weighs more than four, so most lines need no further check.
    if len(line) * 4 <= limit or (len(line) <= limit and line.isascii()):
        yield line
        return
    for piece in _pieces(line, limit, lambda units, cut: cut):
        if weigh_cjk and weighted_length(piece) > limit:
            yield from _pieces(piece, max(1, tokens), _after_pair)
        else:
            yield piece


def _pieces(text: str, size: int, adjust: Callable[[bytes, int], int]) -> Iterator[str]:
    """Yield consecutive slices of `size` UTF-16 units; `adjust` may move a cut."""
    if text.isascii():
        yield from (text[at : at + size] for at in range(0, len(text), size))
        return
    units = text.encode("utf-16-le", "surrogatepass")
    at, end = 0, len(units)
    while at < end:
        cut = adjust(units, min(at + size * 2, end))
        yield units[at:cut].decode("utf-16-le", "surrogatepass")
        at = cut


def _after_pair(units: bytes, cut: int) -> int:
    """Return the cut, moved one unit if it would divide a surrogate pair."""
    if cut >= len(units):
        return cut
    before, after = units[cut - 1], units[cut + 1]
    return cut + 2 if 0xD8 <= before <= 0xDB and 0xDC <= after <= 0xDF else cut


def _tail(buffer: list[tuple[int, int, str]], carried: int) -> list[tuple[int, int, str]]:
    """Return the last segments that together reach `carried`."""
    first, cost = len(buffer), 0
    while first and cost < carried:
        first -= 1
        cost += buffer[first][1]
    return buffer[first:]


def _chunk(buffer: list[tuple[int, int, str]]) -> Chunk:
    text = well_formed("\n".join([part[2] for part in buffer]))
    return Chunk(
        start_line=buffer[0][0],
        end_line=buffer[-1][0],
        text=text,
        hash=sha256(text.encode()).hexdigest(),
    )
