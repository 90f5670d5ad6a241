"""Cut a line that is longer than a chunk.

A piece ends after a sentence if one ends in its second half, else at white space, else between two
characters. Each piece starts a little before the end of the previous one."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator

Weigh = Callable[[int, int], int]
"""Returns the length of the text between two offsets, in quarter tokens."""

_SENTENCE_ENDS = (". ", "! ", "? ", "。", "！", "？", "．", "। ", "؟ ", "۔ ", "… ", ".\t")
_PAUSES = (" ", "\t", "\u3000", "、", "，", "；", "：", "\u200b")
_CLUSTER = 32
"""Longer runs of combining marks occur in no language and may be cut anywhere."""


def cut_line(
    text: str, start: int, end: int, limit: int, overlap: int, weigh: Weigh
) -> Iterator[tuple[int, int]]:
    """Yield spans of at most `limit` that cover `text[start:end]` and overlap by `overlap`."""
    while True:
        stop = _fit_forward(start, end, limit, weigh)
        if stop == end:
            yield start, end
            return
        cut = _good_cut(text, start + (stop - start + 1) // 2, stop)
        yield start, cut
        # At least half of every piece is new text, for any overlap.
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
    """Return the last good place to end a piece between two offsets."""
    for marks in (_SENTENCE_ENDS, _PAUSES):
        found = [at + len(mark) for mark in marks if (at := text.rfind(mark, low, high)) >= 0]
        if found:
            return max(found)
    return _between_characters(text, low, high)


def _good_start(text: str, low: int, high: int) -> int:
    """Return the first good place to start a piece between two offsets."""
    if low >= high:
        return high
    for marks in (_SENTENCE_ENDS, _PAUSES):
        found = [at + len(mark) for mark in marks if (at := text.find(mark, low, high)) >= 0]
        if found and min(found) < high:
            return min(found)
    return high  # there is no word to start at: do not overlap


def _between_characters(text: str, low: int, high: int) -> int:
    """Return `high`, or a little less if that would separate a letter from its marks."""
    cut = high
    while cut > max(low, high - _CLUSTER) and cut < len(text):
        joined = text[cut - 1] == "\u200d" or text[cut] == "\u200d"
        if not joined and unicodedata.category(text[cut])[0] != "M":
            return cut
        cut -= 1
    return high
