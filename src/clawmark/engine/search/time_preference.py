"""Prefers passages whose days match a time named in the question: a bonus, not a filter.

A match raises a score by at most a tenth of what it lacks; no score is lowered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clawmark.engine.search.scoring import Candidate

BONUS = 0.1
LONGEST_SLACK = 7
"""Notes are often written a little later: the match falls to 0 over half the range's length, and at
most this many days."""

_CUES = (
    " ago yesterday today tonight tomorrow week weeks weekend month months year years quarter "
    "day days morning afternoon "
    "evening night january february march april may june july august september october november "
    "december jan feb mar apr "
    "jun jul aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday "
    "q1 q2 q3 q4 "
)
_PUNCTUATION = ".,;:!?'\"()[]"

Range = tuple[str, str]


def may_name_time(text: str) -> bool:
    """Return False if a question certainly names no time; a cheap check before parsing it."""
    words = text[:2000].lower().replace("'s", "").replace("’s", "").split()
    bare = [word.strip(_PUNCTUATION) for word in words]
    return any(f" {word} " in _CUES or word[:2] in ("19", "20", "21") for word in bare if word)


def time_preference(first_day: str, last_day: str, ranges: Sequence[Range]) -> float:
    """Return 1 for days that touch a range, less for days close to one, and 0 otherwise or without
    a date."""
    if not last_day or not ranges:
        return 0.0
    # Imported late: few questions name a time.
    from datetime import date

    first, last = (
        date.fromisoformat(first_day).toordinal(),
        date.fromisoformat(last_day).toordinal(),
    )
    best = 0.0
    for start, end in ranges:
        low, high = date.fromisoformat(start).toordinal(), date.fromisoformat(end).toordinal()
        distance = max(0, low - last, first - high)
        slack = min(LONGEST_SLACK, max(1, (high - low + 1) // 2))
        best = max(best, 1.0 - distance / (slack + 1))
    return best


def prefer_times(candidates: Sequence[Candidate], ranges: Sequence[Range]) -> list[Candidate]:
    """Add the bonus for the times named in the question and sort again."""
    raised = []
    for candidate in candidates:
        share = time_preference(candidate.row.first_day, candidate.row.last_day, ranges)
        score = (
            candidate.score + BONUS * (1.0 - candidate.score) * share
            if candidate.score > 0.0
            else candidate.score
        )
        raised.append(candidate._replace(when=share, score=score))
    raised.sort(key=lambda candidate: -candidate.score)
    return raised
