"""Find entries of MEMORY.md that another entry of it already covers."""

from __future__ import annotations

from typing import NamedTuple

from clawmark.agent.consolidation.entries import Entry
from clawmark.agent.consolidation.wording import covers


class Duplicate(NamedTuple):
    """An entry that can be removed, and the one that says everything in it."""

    entry: Entry
    kept: Entry


def find_duplicates(entries: list[Entry]) -> list[Duplicate]:
    """Return the duplicates among the entries of MEMORY.md; of two equal ones, the later."""
    own = [entry for entry in entries if entry.is_long_term]
    found, removed = list[Duplicate](), set[Entry]()
    for entry in own:
        for other in own:
            if other is entry or other in removed or entry.box != other.box:
                continue
            if not covers(other.text, entry.text):
                continue
            if covers(entry.text, other.text) and entry.start_line < other.start_line:
                continue  # they say the same: the first one stays
            found.append(Duplicate(entry, other))
            removed.add(entry)
            break
    return found
