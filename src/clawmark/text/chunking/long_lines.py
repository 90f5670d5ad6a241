"""Pieces of a single line that is longer than a chunk may be.

Takes a text, the span of one line and the sizes in quarter tokens, gives spans that cover the line:
cut after a sentence where there is one in the second half of the piece, else at white space, else
between two characters. Each piece starts a little before the end of the one before it. Whole lines
are left to `markdown`."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator

Weigh = Callable[[int, int], int]
"""The length of the text between two offsets, in quarter tokens."""

_SENTENCE_ENDS = (". ", "! ", "? ", "。", "！", "？", "．", "। ", "؟ ", "۔ ", "… ", ".\t")
_PAUSES = (" ", "\t", "\u3000", "、", "，", "；", "：", "\u200b")
_CLUSTER = 32
"""No letter carries more marks than this in any language; longer runs are noise and may be cut
anywhere.
"""


def cut_line(
    text: str, start: int, end: int, limit: int, overlap: int, weigh: Weigh
) -> Iterator[tuple[int, int]]:
    """Cover `text[start:end]` with spans of at most `limit`, each sharing at most `overlap` with
    the one before.
    """
    while True:
        stop = _fit_forward(start, end, limit, weigh)
        if stop == end:
            yield start, end
            return
        cut = _good_cut(text, start + (stop - start + 1) // 2, stop)
        yield start, cut
        # At least half of every piece is new, whatever overlap was asked for.
        earliest = start + (cut - start + 1) // 2
        start = _good_start(text, _fit_backward(earliest, cut, overlap, weigh), cut)


def _fit_forward(start: int, end: int, limit: int, weigh: Weigh) -> int:
    stop = min(end, start + limit)
    while (weight := weigh(start, stop)) > limit and stop - start > 1:
        stop = start + max(1, (stop - start) * limit // weight)
    return stop


def _fit_backward(start: int, end: int, limit: int, weigh: Weigh) -> int:
    start = max(start, end - limit)
    while start < end and (weight := weigh(start, end)) > limit:
        start = end - (end - start) * limit // weight
    return start


def _good_cut(text: str, low: int, high: int) -> int:
    """The last good place to end a piece between two offsets."""
    for marks in (_SENTENCE_ENDS, _PAUSES):
        found = [at + len(mark) for mark in marks if (at := text.rfind(mark, low, high)) >= 0]
        if found:
            return max(found)
    return _between_characters(text, low, high)


def _good_start(text: str, low: int, high: int) -> int:
    """The first good place to start a piece between two offsets."""
    if low >= high:
        return high
    for marks in (_SENTENCE_ENDS, _PAUSES):
        found = [at + len(mark) for mark in marks if (at := text.find(mark, low, high)) >= 0]
        if found and min(found) < high:
            return min(found)
    return high  # without a word to start at there is nothing worth repeating


def _between_characters(text: str, low: int, high: int) -> int:
    """The offset `high`, or a little less when that would part a letter from its marks."""
    cut = high
    while cut > max(low, high - _CLUSTER) and cut < len(text):
        joined = text[cut - 1] == "\u200d" or text[cut] == "\u200d"
        if not joined and unicodedata.category(text[cut])[0] != "M":
            return cut
        cut -= 1
    return high
