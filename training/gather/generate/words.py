"""Everyday nouns from WordNet, by subject, for the grammar."""

import re
from collections.abc import Iterable

_SUBJECTS = {
    "04": "wn.act",
    "05": "wn.animal",
    "06": "wn.artifact",
    "09": "wn.idea",
    "11": "wn.event",
    "13": "wn.food",
    "14": "wn.group",
    "15": "wn.location",
    "18": "wn.person",
    "20": "wn.plant",
    "26": "wn.state",
    "27": "wn.substance",
}
_NAMES = {"15": "wn.place", "18": "wn.famous"}
_COMMON_WEIGHT = 4
_OFFENSIVE = re.compile(r"\b(slurs?|offensive|derogatory|disparag\w+|vulgar|obscene|insulting)\b")


def wordnet_sections(data: Iterable[str], index: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Collect the first word of each meaning in `data.noun`, and names of people and places.

    A word that `index.noun` counts in tagged text is more common, and is listed more often.
    """
    common = common_words(index)
    found: dict[str, dict[str, None]] = {
        name: {} for name in (*_SUBJECTS.values(), *_NAMES.values())
    }
    for line in data:
        fields = line.split(" ", 5)
        if len(fields) < 6 or _OFFENSIVE.search(line):
            continue
        word, subject = fields[4], fields[1]
        if subject in _SUBJECTS and _is_plain(word):
            found[_SUBJECTS[subject]].setdefault(word)
        elif subject in _NAMES and word[0].isupper() and " @i " in fields[5]:
            found[_NAMES[subject]].setdefault(word)
    return {name: _weighted(words, common) for name, words in found.items()}


def common_words(index: Iterable[str]) -> set[str]:
    """Return the words of an index file that have at least one counted meaning."""
    found = set()
    for line in index:
        fields = line.split()
        if line.startswith(" ") or len(fields) < 6:
            continue
        pointers = int(fields[3])
        if int(fields[5 + pointers]) > 0:
            found.add(fields[0])
    return found


def _weighted(words: Iterable[str], common: set[str]) -> tuple[str, ...]:
    listed = []
    for word in words:
        listed += [word.replace("_", " ")] * (_COMMON_WEIGHT if word in common else 1)
    return tuple(listed)


def _is_plain(word: str) -> bool:
    return word.islower() and word.replace("_", "").isalpha() and word.count("_") < 2
