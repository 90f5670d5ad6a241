"""Find entries of MEMORY.md that another entry of it already covers."""

from __future__ import annotations

from typing import NamedTuple

from clawmark.agent.consolidation.entries import Entry
from clawmark.agent.consolidation.wording import (
    FEWEST_WORDS,
    Wording,
    covers,
    part_wordings,
    wording,
)


class Duplicate(NamedTuple):
    """An entry that can be removed, and the one that says everything in it."""

    entry: Entry
    kept: Entry


def find_duplicates(entries: list[Entry]) -> list[Duplicate]:
    """Return the duplicates among the entries of MEMORY.md; of two equal ones, the later."""
    own = [entry for entry in entries if entry.is_long_term]
    by_part = dict[Wording, list[Entry]]()
    for entry in own:
        for part in part_wordings(entry.text):
            by_part.setdefault(part, []).append(entry)
    found, removed = list[Duplicate](), set[Entry]()
    for entry in own:
        wanted = wording(entry.text)
        covering = by_part.get(wanted, []) if wanted.size >= FEWEST_WORDS else []
        kept = next((one for one in covering if _stays(one, entry, removed)), None)
        if kept is not None:
            found.append(Duplicate(entry, kept))
            removed.add(entry)
    return found


def _stays(other: Entry, entry: Entry, removed: set[Entry]) -> bool:
    """Whether an entry that covers another one can replace it."""
    if other is entry or other in removed or other.box != entry.box:
        return False
    # If they say the same, the first one stays.
    return not covers(entry.text, other.text) or other.start_line < entry.start_line
