"""Count on how many days an agent found an entry of a daily log by searching for it.

The counts are in one small file of the state folder, under the hashes of the entries: the file has
no text. It is written after a search by an agent's tool, never by `clawmark search`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from clawmark.agent.consolidation.wording import wording
from clawmark.history.journal import entry_hash
from clawmark.model.errors import ClawmarkError
from clawmark.model.values import Hit
from clawmark.system import shared_json
from clawmark.text.dates import date_of
from clawmark.text.entries import split_entries

MOST_ENTRIES = 5_000
MOST_DAYS = 16
LOCK_SECONDS = 0.2
LONG_LOCK_SECONDS = 10.0
FEWEST_WORDS = 2
"""Words that a question and an entry must have in common for the entry to be an answer."""


def used_entries(question: str, hits: Sequence[Hit]) -> list[str]:
    """Return the entries of daily logs among some hits that share words with the question."""
    asked = wording(question).words
    found = list[str]()
    for hit in hits:
        if not date_of(hit.path) or hit.source != "memory":
            continue
        for entry in split_entries(hit.snippet):
            shared = asked & wording(entry.text).words
            if len(shared) >= FEWEST_WORDS and 2 * len(shared) >= len(asked):
                found.append(entry.text)
    return found


class UsageCounts:
    """The days on which entries were used."""

    def __init__(self, path: str) -> None:
        self.path = path

    def record(self, entries: Iterable[str], day: str) -> None:
        """Add a day to some entries. Never raises: a count that is lost changes no answer."""
        hashes = list(dict.fromkeys(map(entry_hash, entries)))
        if not hashes:
            return
        try:
            with shared_json.locked(self.path, LOCK_SECONDS) as is_locked:
                if is_locked:
                    self._add(hashes, day)
        except OSError:
            return

    def remove(self, hashes: Iterable[str]) -> None:
        """Remove the counts of some entries, by their hashes. Raises OSError."""
        gone = frozenset(hashes)
        if not gone or not os.path.exists(self.path):
            return
        with shared_json.locked(self.path, LONG_LOCK_SECONDS) as is_locked:
            if not is_locked:
                raise ClawmarkError(f"Another process keeps {self.path} locked.", hint="Try again.")
            counts = self._load()
            left = {name: days for name, days in counts.items() if name not in gone}
            if left != counts:
                shared_json.save(self.path, {"days": left}, durable=True)

    def read(self) -> Callable[[str], int]:
        """Return a function that says on how many days an entry was used, by its text."""
        counts = self._load()
        return lambda text: len(counts.get(entry_hash(text), []))

    def _add(self, hashes: list[str], day: str) -> None:
        counts = self._load()
        is_new = [one for one in hashes if day not in counts.get(one, [])]
        if not is_new:
            return
        for one in is_new:
            # The entry moves to the end: the ones that were not used for longest go first.
            counts[one] = [*counts.pop(one, []), day][-MOST_DAYS:]
        kept = list(counts.items())[-MOST_ENTRIES:]
        shared_json.save(self.path, {"days": dict(kept)})

    def _load(self) -> dict[str, list[str]]:
        try:
            found = (shared_json.load(self.path) or {}).get("days")
        except (OSError, ValueError):
            return {}
        if not isinstance(found, dict):
            return {}
        return {
            str(name): [str(day) for day in days]
            for name, days in found.items()
            if isinstance(days, list)
        }
