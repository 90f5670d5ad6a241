"""Find entries of MEMORY.md that another entry of it already covers."""

from __future__ import annotations

import re
from typing import NamedTuple

from clawmark.agent.consolidation.entries import Entry
from clawmark.agent.consolidation.repeated import DEPENDENT, STANDING
from clawmark.agent.consolidation.wording import (
    FEWEST_WORDS,
    Wording,
    covers,
    has_same_order,
    part_wordings,
    wording,
)


class Duplicate(NamedTuple):
    """An entry that can be removed, and the one that says everything in it."""

    entry: Entry
    kept: Entry


MOST_COVERING = 20
"""Entries with the same words that an entry is compared with."""
_KEYED = re.compile(r"\A(?:\*\*)?[^,;:.!?()]{2,60}:(?:\*\*)? ")


def find_duplicates(entries: list[Entry]) -> list[Duplicate]:
    """Return the duplicates among the entries of MEMORY.md; of two equal ones, the later."""
    own = [entry for entry in entries if entry.is_long_term]
    by_part = dict[Wording, list[Entry]]()
    for entry in own:
        for part in part_wordings(entry.text):
            known = by_part.setdefault(part, [])
            if len(known) < MOST_COVERING:
                known.append(entry)
    divided = {entry.heading for entry in own if entry.is_title}
    found, removed = list[Duplicate](), set[Entry]()
    for entry in own:
        wanted = wording(entry.text)
        if wanted.size < FEWEST_WORDS or _needs_surroundings(entry):
            continue
        for kept in by_part.get(wanted, []):
            if not _stays(kept, entry, removed):
                continue
            is_one_list = kept.heading == entry.heading and entry.heading not in divided
            if is_one_list or _stands_alone(entry, wanted):
                found.append(Duplicate(entry, kept))
                removed.add(entry)
                break
    return found


def _needs_surroundings(entry: Entry) -> bool:
    """Whether an entry says nothing without the ones around it."""
    return entry.is_title or DEPENDENT.match(entry.plain) is not None


def _stands_alone(entry: Entry, words: Wording) -> bool:
    """Whether an entry says the same below any heading: a whole sentence, not "Price: 900 euros"
    or "two cups of honey".
    """
    is_sentence = entry.plain[:1].isupper() and entry.plain.endswith((".", "!"))
    is_sentence = is_sentence and STANDING.search(entry.plain) is not None
    return is_sentence and words.size > FEWEST_WORDS and not _KEYED.match(entry.plain)


def _stays(other: Entry, entry: Entry, removed: set[Entry]) -> bool:
    """Whether an entry that covers another one can replace it."""
    if other is entry or other in removed or other.box != entry.box:
        return False
    if not has_same_order(other.text, entry.text):
        return False
    # If they say the same, the first one stays.
    return not covers(entry.text, other.text) or other.start_line < entry.start_line
