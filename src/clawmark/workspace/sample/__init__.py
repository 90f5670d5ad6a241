"""A small sample workspace: a `MEMORY.md` and twenty-three daily logs, dated back from today.

The words of `QUESTIONS` occur nowhere in the notes, so that only a search by meaning answers them.
The texts are next to this module; dates in them are written as `{-12}`, days from today.
"""

from __future__ import annotations

import os
import re
from datetime import date, timedelta
from typing import NamedTuple

from clawmark.workspace.daily import daily_path

_TEXTS = os.path.dirname(__file__)


class Question(NamedTuple):
    """A question and where its answer is."""

    text: str
    days_ago: int
    marker: str
    """Words of the answering passage."""

    def path(self, today: date) -> str:
        """The daily log that answers it."""
        return daily_path((today - timedelta(days=self.days_ago)).isoformat())


QUESTIONS = (
    Question("Which database did we choose?", 30, "PostgreSQL 16"),
    Question(
        "Why were customers charged twice?", 19, "Our handler took every delivery for a new payment"
    ),
    Question(
        "Which foods are unsafe due to an allergy?",
        14,
        "Cashews and pistachios are dangerous for Ines",
    ),
)


def write_sample(root: str, today: date) -> list[str]:
    """Write the sample workspace and return its paths, sorted; existing files are kept."""
    os.makedirs(os.path.join(root, "memory"), exist_ok=True)
    written = []
    for name in sorted(os.listdir(_TEXTS)):
        stem, extension = os.path.splitext(name)
        if extension != ".md":
            continue
        day = (
            today - timedelta(days=int(stem.removeprefix("day-")))
            if stem.startswith("day-")
            else today
        )
        path = daily_path(day.isoformat()) if stem.startswith("day-") else name
        with open(os.path.join(_TEXTS, name), encoding="utf-8") as source:
            text = _dated(source.read(), day, today)
        try:
            with open(os.path.join(root, path), "x", encoding="utf-8", newline="\n") as target:
                target.write(text)
        except FileExistsError:
            continue
        written.append(path)
    return sorted(written)


def _dated(text: str, day: date, today: date) -> str:
    """Fill in `{date}` (the log's own day) and `{-12}` or `{+3}` (days from today)."""

    def fill(match: re.Match[str]) -> str:
        return (today + timedelta(days=int(match[1]))).isoformat()

    return re.sub(r"\{([+-]\d+)\}", fill, text.replace("{date}", day.isoformat()))
