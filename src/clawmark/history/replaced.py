"""Find what lines of a memory file have replaced: "now in March, was in February until 2 March".

A line replaces another one if it stands in its place and shares most of its words. The comparison
goes back from version to version, so a line that was changed twice has two earlier texts."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

from clawmark.history.history import History
from clawmark.history.repository import Version
from clawmark.model.versions import Replaced
from clawmark.text.entry_content import normalize_entry
from clawmark.text.entry_times import without_times
from clawmark.text.keywords.query import query_terms
from clawmark.text.line_diff import line_changes
from clawmark.text.untrusted.origin_labels import without_comments

SHARED_WORDS = 0.5
"""The share of the words of the shorter line that a replacement in the same place has in common."""
MOVED_WORDS, MOVED_COUNT = 0.6, 2
"""The same share, and the least number of words, for a line that stands in another place."""
SAME_LETTERS = 0.75
"""The similarity of the letters that counts for lines with hardly any words."""
MOST_PAIRS = 20_000
"""More pairs of changed lines than this are not compared: the file was written anew."""
MOST_REPLACED = 5
LONGEST_TEXT = 300
_BULLET = re.compile(r"\s*(?:(?:[-*+]|[0-9]{1,4}[.)])\s+(?:\[[ xX]\]\s+)?)?")


class LineMap(NamedTuple):
    """Where the lines of a text come from; all numbers count from 0."""

    same: dict[int, int]
    """A new line, and the old line that says the same, also if it was moved."""
    replaced: dict[int, int]
    """A new line, and the old line that it replaces."""


class Text(NamedTuple):
    """A state of a file, and when it began."""

    text: str
    seconds: float
    version: str = ""
    """Empty for a file that is not recorded yet."""


def map_lines(old: Sequence[str], new: Sequence[str]) -> LineMap:
    """Compare two texts line by line."""
    same, replaced = dict[int, int](), dict[int, int]()
    removed, added = list[int](), list[int]()
    for kind, old_start, old_end, new_start, new_end in line_changes(old, new):
        if kind == "equal":
            same.update(zip(range(new_start, new_end), range(old_start, old_end), strict=True))
            continue
        before, after = range(old_start, old_end), range(new_start, new_end)
        pairs = _pairs(old, new, before, after, in_place=True)
        _sort_pairs(old, new, pairs, same, replaced)
        paired = set(pairs.values())
        removed += [number for number in before if number not in paired]
        added += [number for number in after if number not in pairs]
    _sort_pairs(old, new, _pairs(old, new, removed, added, in_place=False), same, replaced)
    return LineMap(same, replaced)


def find_replaced(
    states: Iterable[Text], start: int, end: int, zone: tzinfo | None
) -> tuple[Replaced, ...]:
    """Return what the lines `start` to `end` of the first state have replaced, the latest first.

    `states` are the states of a file, the newest first."""
    found = list[Replaced]()
    later: Text | None = None
    lines, tracked = list[str](), set[int]()
    for state in states:
        older = state.text.split("\n")
        if later is None:
            tracked = set(range(start - 1, min(end, len(older))))
        else:
            origin = map_lines(older, lines)
            found += [
                Replaced(
                    text=_shown(older[origin.replaced[number]]),
                    until=_time(later.seconds, zone),
                    version=later.version,
                )
                for number in sorted(tracked)
                if number in origin.replaced
            ]
            back = origin.same | origin.replaced
            tracked = {back[number] for number in tracked if number in back}
        later, lines = state, older
        if not tracked or len(found) >= MOST_REPLACED:
            break
    return tuple(found[:MOST_REPLACED])


def replacements(
    history: History,
    path: str,
    start: int,
    end: int,
    *,
    present: Text | None = None,
    at: Version | None = None,
    zone: tzinfo | None = None,
) -> tuple[Replaced, ...]:
    """Return what the lines of a file have replaced, the latest first.

    The lines are those of `present`, the file as it is now, or of the version `at`."""

    def states() -> Iterator[Text]:
        if present is not None:
            yield present
        for version, data in history.texts(path, at):
            if data is None:
                return  # the file was made after this
            yield Text(decode_text(data), version.seconds, version.id)

    return find_replaced(states(), start, end, zone)


def replaced_in(history: History, version: Version, path: str) -> tuple[tuple[str, str], ...]:
    """Return the lines that a version replaced in a file, each with the new line."""
    after, before = "", ""
    for number, (_, data) in enumerate(history.texts(path, version)):
        if number == 0:
            after = decode_text(data or b"")
        else:
            before = decode_text(data or b"")
            break
    old, new = before.split("\n"), after.split("\n")
    pairs = map_lines(old, new).replaced
    return tuple((_shown(old[pairs[line]]), _shown(new[line])) for line in sorted(pairs))


def _pairs(
    old: Sequence[str],
    new: Sequence[str],
    before: Sequence[int],
    after: Sequence[int],
    *,
    in_place: bool,
) -> dict[int, int]:
    """Return for new lines the most similar old line, each line in at most one pair."""
    if not before or not after or len(before) * len(after) > MOST_PAIRS:
        return {}
    words = {line: _words(line) for line in (*(old[n] for n in before), *(new[n] for n in after))}
    scored = sorted(
        (-score, one, other)
        for one in before
        for other in after
        if (score := _similarity(old[one], new[other], words, in_place=in_place))
    )
    pairs = dict[int, int]()
    used = set[int]()
    for _, one, other in scored:
        if one not in used and other not in pairs:
            used.add(one)
            pairs[other] = one
    return pairs


def _sort_pairs(
    old: Sequence[str],
    new: Sequence[str],
    pairs: dict[int, int],
    same: dict[int, int],
    replaced: dict[int, int],
) -> None:
    for number, before in pairs.items():
        is_same = _content(old[before]) == _content(new[number])
        (same if is_same else replaced)[number] = before


def _similarity(old: str, new: str, words: dict[str, frozenset[str]], *, in_place: bool) -> float:
    """Return how similar two lines are; 0 if neither can have replaced the other."""
    one, other = words[old], words[new]
    if _content(old) == _content(new):
        return 2.0 if one else 0.0
    smaller = min(len(one), len(other))
    if not smaller:
        return 0.0
    shared = one & other
    common = len(shared) if any(map(_is_telling, shared)) else 0
    share = common / smaller
    # Of two candidates with the same words in common, the one with fewer other words is better.
    score = share + common / len(one | other) / 10
    if in_place:
        return score if share >= SHARED_WORDS or _letters(old, new) >= SAME_LETTERS else 0.0
    return score if share >= MOVED_WORDS and common >= MOVED_COUNT else 0.0


def _is_telling(word: str) -> bool:
    """Whether a word that two lines share says that they are about the same thing."""
    return not word.isascii() or (len(word) > 2 and not word.isdigit())


def _letters(old: str, new: str) -> float:
    return difflib.SequenceMatcher(None, _content(old), _content(new), autojunk=False).ratio()


def _words(line: str) -> frozenset[str]:
    return frozenset(term.phrase.casefold() for term in query_terms(_content(line)))


def _content(line: str) -> str:
    return normalize_entry(without_times(without_comments(line)))


def decode_text(data: bytes) -> str:
    """Return a recorded file as text, with the lines that a reader sees."""
    return data.decode("utf-8-sig", "replace").replace("\r\n", "\n")


def _shown(line: str) -> str:
    text = _BULLET.sub("", without_comments(line), count=1).strip()
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


def _time(seconds: float, zone: tzinfo | None) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).astimezone(zone).isoformat()
