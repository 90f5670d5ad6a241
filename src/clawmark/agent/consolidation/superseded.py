"""Find statements that a newer one replaces, and statements that contradict each other."""

from __future__ import annotations

import re
from typing import NamedTuple

from clawmark.agent.consolidation.claim_index import ClaimIndex, ClaimKey
from clawmark.agent.consolidation.claims import (
    MARK,
    Claim,
    is_comparable,
    is_same_value,
    old_values,
)
from clawmark.agent.consolidation.entries import Entry
from clawmark.agent.consolidation.when import find_times
from clawmark.agent.consolidation.wording import FILLERS, tokens_of, wording

MOST_VALUES = 5
"""Different values of one thing. With more, it changes all the time or is about many things."""
MOST_COMPARED = 50
"""Claims about one thing that are compared with each other, the newest ones."""
MOST_HOLDERS = 100
_RATE = re.compile(r"(?:\s(?:a|an|per|pro|je|die|im)\s[^\W\d_]{2,20}){1,2}")
"""What belongs to an amount and does not change with it: "29 euros a month per school"."""
_GERMAN = frozenset(("der", "die", "das", "ist", "im", "am", "und", "wohnt", "beträgt", "kostet"))


class Superseded(NamedTuple):
    """An entry of MEMORY.md with a value that a newer statement has replaced."""

    entry: Entry
    old: str
    """The value as it stands in the entry."""
    new: str
    by: Claim
    text: str
    """The entry with the new value and a mark that shows the old one."""


class Contradiction(NamedTuple):
    """Two claims about the same subject with different values, of which none is marked."""

    older: Claim
    newer: Claim


def find_superseded(index: ClaimIndex) -> list[Superseded]:
    """Return the entries of MEMORY.md that the newest statement of the logs replaces.

    The statement says itself that something has changed, or it is newer than MEMORY.md. It is not
    older than the entry, as far as that is known."""
    found = dict[tuple[str, str], Superseded]()
    for claim in index.own:
        entry, newest = claim.entry, index.newest(claim)
        if newest is None or is_same_value(claim, newest) or _is_marked(entry, newest):
            continue
        is_newer = newest.is_change
        if not claim.is_many and bool(entry.day) and entry.day < newest.entry.day:
            is_newer = True
        is_named = bool(newest.before) and _names_value(newest, claim)
        if (newest.before or index.is_ambiguous(claim)) and not is_named:
            is_newer = False  # another value has changed, or it is not clear which one
        if entry.known_day > newest.entry.day:
            is_newer = False  # the entry was corrected after that log
        replaced = _replaced(entry, claim.phrase, newest) if is_newer else None
        if replaced is not None:
            found.setdefault((entry.citation, claim.phrase), replaced)
    for superseded in _named_by_logs(index):
        found.setdefault((superseded.entry.citation, superseded.old), superseded)
    return list(found.values())


def find_contradictions(index: ClaimIndex) -> list[Contradiction]:
    """Return the pairs of claims that cannot both be true now, the newest first.

    Two amounts in logs are not a contradiction, because amounts change from day to day; neither is
    a time that was over when the newer statement was made, a statement that says that something
    has changed, or one of many values that the same thing has had."""
    groups = dict[ClaimKey, list[Claim]]()
    marked = dict[frozenset[str], set[str]]()
    for claim in (*index.own, *index.logged):
        if claim.subject:
            groups.setdefault(index.key(claim), []).append(claim)
        for value in old_values(claim.entry):
            marked.setdefault(index.subject(claim.subject), set()).add(value)
    found = list[Contradiction]()
    for (_, subject), claims in groups.items():
        if 1 < len({claim.value for claim in claims}) <= MOST_VALUES:
            found += _among(claims, marked.get(subject, set()), index)
    found.sort(key=lambda pair: (pair.newer.entry.day, pair.older.entry.day), reverse=True)
    return found


def _among(claims: list[Claim], marked: set[str], index: ClaimIndex) -> list[Contradiction]:
    """Return the contradictions among claims about the same thing, the last one of each claim."""
    claims.sort(key=lambda claim: (claim.entry.day, claim.entry.is_long_term))
    claims = claims[-MOST_COMPARED:]
    latest = dict[tuple[str, str], Contradiction]()
    for number, newer in enumerate(claims):
        for older in claims[:number]:
            pair = _pair(older, newer, index.divided)
            if pair is not None and not marked & {
                pair.older.phrase.casefold(),
                pair.newer.phrase.casefold(),
            }:
                latest[(pair.older.entry.citation, pair.older.attribute)] = pair
    return [pair for pair in latest.values() if not _is_replaced(pair, claims, index)]


def _pair(older: Claim, newer: Claim, divided: set[str]) -> Contradiction | None:
    """Return the contradiction of two claims about the same subject, if they are one."""
    if older.entry.citation == newer.entry.citation or not is_comparable(older, newer):
        return None
    if is_same_value(older, newer) or (newer.is_many and not newer.is_change):
        return None
    logs = [claim for claim in (older, newer) if not claim.entry.is_long_term]
    heading = older.entry.heading
    is_one_list = heading == newer.entry.heading and heading not in divided
    if older.is_field and newer.is_field and (logs or not is_one_list):
        return None  # "Price: …" in two places is about two things
    if len(logs) == 2:
        is_amount = newer.attribute.startswith("amount ")
        if newer.is_change or is_amount or not _may_still_hold(older, newer):
            return None
    if len(logs) == 1:
        # The page has no day for each line: it contradicts only what was said about today.
        log = logs[0]
        if log.attribute == "when" and log.last_day and log.last_day < newer.entry.day:
            return None
        page = newer if log is older else older
        older, newer = page, log
    return Contradiction(older, newer)


def _may_still_hold(older: Claim, newer: Claim) -> bool:
    """Whether the older of two claims of logs was about something that was still to come."""
    if older.attribute != "when":
        # "The capital is …" alone does not say of what.
        return older.attribute != "text" or len(older.subject) > 1
    return bool(older.last_day) and older.last_day >= newer.entry.day and len(older.subject) > 1


def _is_replaced(pair: Contradiction, claims: list[Claim], index: ClaimIndex) -> bool:
    """Whether a later log says that the value has changed, or agrees with the older claim."""
    if pair.older.entry.is_long_term:
        newest = index.newest(pair.older)
        return newest is not None and is_same_value(newest, pair.older)
    return any(
        claim.entry.day >= pair.newer.entry.day
        and claim.is_change
        and is_comparable(claim, pair.newer)
        for claim in claims
    )


def is_outdated(entry: Entry, sentence: str, index: ClaimIndex) -> bool:
    """Whether a newer log has another value for what a sentence of a log claims."""
    claims = index.of_sentence(entry, sentence)
    newest = ((claim, index.newest(claim)) for claim in claims)
    return any(newer is not None and not is_same_value(claim, newer) for claim, newer in newest)


def _is_marked(entry: Entry, newer: Claim) -> bool:
    """Whether an entry says that it once had the value, so that the statement is the older one."""
    return newer.phrase.casefold() in old_values(entry)


def _names_value(newer: Claim, claim: Claim) -> bool:
    """Whether the value that a change names as the old one is the value of the claim."""
    if claim.attribute != "when":
        return set(tokens_of(newer.before)) <= set(tokens_of(claim.phrase))
    times = find_times(f"in {newer.before}", newer.entry.day)
    return any(
        is_same_value(claim, newer._replace(attribute="when", value=time.value)) for time in times
    )


def _named_by_logs(index: ClaimIndex) -> list[Superseded]:
    """Return the entries that have the old value which a change of the logs names.

    The subject and the value must be in one entry only: "We switched from Slack to Zulip"."""
    found = list[Superseded]()
    places = {(one.entry.citation, one.value) for one in index.logged if one.attribute == "place"}
    undone = dict[str, str]()  # a value → the last day on which a log said that it was replaced
    for one in index.logged:
        if one.is_change and one.before:
            before = one.before.casefold()
            undone[before] = max(one.entry.day, undone.get(before, ""))
    by_word = dict[str, list[Entry]]()
    for entry in index.own_entries:
        for word in set(tokens_of(entry.text)):
            by_word.setdefault(word, []).append(entry)
    for change in index.logged:
        if not change.before or change.attribute == "when" or not change.is_change:
            continue
        if (change.entry.citation, change.value) in places:
            continue  # who moves to another town takes nothing else along
        value = change.before.strip("` ")
        is_name = value[:1].isupper() or "`" in change.before or value[:1].isdigit()
        is_name = is_name and len(value) > 2 and value.lower() not in FILLERS
        if not is_name or undone.get(change.phrase.casefold(), "") > change.entry.day:
            continue
        holder = _only_holder(value, change, by_word)
        if holder is None or holder.known_day > change.entry.day:
            continue
        if not _is_marked(holder, change):
            replaced = _replaced(holder, value, change)
            if replaced is not None:
                found.append(replaced)
    return found


def _only_holder(value: str, change: Claim, by_word: dict[str, list[Entry]]) -> Entry | None:
    """Return the only entry that has a value and the subject of a change; None if there are more.

    A word in more than `MOST_HOLDERS` entries is not looked up."""
    words = tokens_of(value)
    candidates = min((by_word.get(word, []) for word in words), key=len, default=[])
    if len(candidates) > MOST_HOLDERS:
        return None
    pattern = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)")
    holders = [
        entry
        for entry in candidates
        if change.subject <= wording(entry.text).words
        and len(pattern.findall(MARK.sub("", entry.text))) == 1
    ]
    return holders[0] if len(holders) == 1 else None


def _replaced(entry: Entry, old: str, by: Claim) -> Superseded | None:
    """Return an entry with its value replaced; None if the value is not in it exactly once."""
    pattern = re.compile(rf"(?<!\w){re.escape(old)}(?!\w)")
    marks = [found.span() for found in MARK.finditer(entry.text)]
    places = [
        found
        for found in pattern.finditer(entry.text)
        if not any(start <= found.start() < end for start, end in marks)
    ]
    if len(places) != 1:
        return None
    new = by.phrase.strip("`") if "`" not in old else by.phrase
    word = "bis" if len(_GERMAN & set(tokens_of(entry.text))) > 1 else "until"
    start, end = places[0].span()
    rate = _RATE.match(entry.text, end)
    after = rate.end() if rate else end
    rest = entry.text[after:]
    if marks and rest.lstrip().startswith("("):  # an earlier mark of the same value goes
        rest = MARK.sub("", rest, count=1)
    mark = f" ({word} {by.entry.day}: {old})"
    text = f"{entry.text[:start]}{new}{entry.text[end:after]}{mark}{rest}"
    return Superseded(entry=entry, old=old, new=new, by=by, text=text)
