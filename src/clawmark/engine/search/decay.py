"""Reduces the score of dated notes by age: half of it after a half-life.

MEMORY.md and undated notes do not age."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date

from clawmark.engine.search.scoring import Candidate
from clawmark.text.dates import day_of


def multiplier(age_days: float, half_life_days: float) -> float:
    """Return 1 for today, 0.5 after one half-life; 1 for a future day or an invalid half-life."""
    if half_life_days <= 0 or not math.isfinite(half_life_days):
        return 1.0
    return math.exp(-math.log(2) / half_life_days * max(0.0, age_days))


def apply_decay(
    candidates: Sequence[Candidate], half_life_days: float, today: str
) -> list[Candidate]:
    """Multiply each dated candidate's score by its factor and sort again."""
    reference = date.fromisoformat(today)
    aged = []
    for candidate in candidates:
        row = candidate.row
        day = day_of(row.path, row.source, row.heading)
        factor = (
            multiplier((reference - date.fromisoformat(day)).days, half_life_days) if day else 1.0
        )
        aged.append(candidate._replace(decay=factor, score=candidate.score * factor))
    aged.sort(key=lambda candidate: -candidate.score)
    return aged
