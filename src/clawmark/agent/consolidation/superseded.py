"""Find statements that a newer one replaces, and statements that contradict each other."""

from __future__ import annotations

import re
from typing import NamedTuple

from clawmark.agent.consolidation.claims import (
    MARK,
    Claim,
    find_claims,
    full_names,
    is_comparable,
    is_same_subject,
    is_same_value,
    old_values,
)
from clawmark.agent.consolidation.entries import Entry
from clawmark.agent.consolidation.when import find_times
from clawmark.agent.consolidation.wording import FILLERS, tokens_of, wording

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


def find_superseded(entries: list[Entry]) -> list[Superseded]:
    """Return the entries of MEMORY.md that the newest statement of the logs replaces.

    The statement says itself that something has changed, or it is newer than MEMORY.md."""
    own = [entry for entry in entries if entry.is_long_term]
    names = full_names(own)
    logged = [claim for entry in entries if not entry.is_long_term for claim in find_claims(entry)]
    found = dict[tuple[str, str], Superseded]()
    for entry in own:
        for claim in find_claims(entry):
            newest = _newest(claim, logged, names)
            if newest is None or is_same_value(claim, newest) or _is_marked(entry, newest):
                continue
            is_newer = newest.is_change or (bool(entry.day) and entry.day < newest.entry.day)
            if newest.before and not _names_value(newest, claim):
                is_newer = False
            replaced = _replaced(entry, claim.phrase, newest) if is_newer else None
            if replaced is not None:
                found.setdefault((entry.citation, claim.phrase), replaced)
    for superseded in _named_by_logs(own, logged):
        found.setdefault((superseded.entry.citation, superseded.old), superseded)
    return list(found.values())


def find_contradictions(entries: list[Entry]) -> list[Contradiction]:
    """Return the pairs of claims that cannot both be true now, the newest first.

    Two amounts in logs are not a contradiction, because amounts change from day to day; neither is
    a time that was over when the newer statement was made, or a statement that says that something
    has changed."""
    claims = [claim for entry in entries for claim in find_claims(entry)]
    names = full_names(entry for entry in entries if entry.is_long_term)
    marked = [(claim.subject, value) for claim in claims for value in old_values(claim.entry)]
    latest = dict[tuple[str, str], Contradiction]()
    ordered = sorted(claims, key=lambda claim: (claim.entry.day, claim.entry.is_long_term))
    groups = dict[tuple[str, frozenset[str]], list[Claim]]()
    for newer in ordered:
        # Only claims about the same subject and kind of value are compared.
        key = (" ".join(newer.attribute.split()[:2]), _full_name(newer.subject, names))
        for older in groups.setdefault(key, []):
            pair = _pair(older, newer, names)
            if pair is not None and not _has_mark(pair, marked, names):
                latest[(pair.older.entry.citation, pair.older.attribute)] = pair
        groups[key].append(newer)
    found = [pair for pair in latest.values() if not _is_replaced(pair, ordered, names)]
    found.sort(key=lambda pair: (pair.newer.entry.day, pair.older.entry.day), reverse=True)
    return found


def _full_name(subject: frozenset[str], names: set[frozenset[str]]) -> frozenset[str]:
    """Return the full name that a first name stands for; any other subject as it is."""
    full = [name for name in names if subject < name]
    return full[0] if len(subject) == 1 and len(full) == 1 else subject


def _pair(older: Claim, newer: Claim, names: set[frozenset[str]]) -> Contradiction | None:
    """Return the contradiction of two claims, if they are one."""
    if older.entry.citation == newer.entry.citation or not is_comparable(older, newer):
        return None
    if not is_same_subject(older.subject, newer.subject, names) or is_same_value(older, newer):
        return None
    logs = [claim for claim in (older, newer) if not claim.entry.is_long_term]
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


def _has_mark(
    pair: Contradiction,
    marked: list[tuple[frozenset[str], str]],
    names: set[frozenset[str]],
) -> bool:
    """Whether MEMORY.md says that one of the two values is the old one."""
    values = {pair.older.phrase.casefold(), pair.newer.phrase.casefold()}
    return any(
        value in values and is_same_subject(subject, pair.older.subject, names)
        for subject, value in marked
    )


def _may_still_hold(older: Claim, newer: Claim) -> bool:
    """Whether the older of two claims of logs was about something that was still to come."""
    if older.attribute != "when":
        # "The capital is …" alone does not say of what.
        return older.attribute != "text" or len(older.subject) > 1
    return bool(older.last_day) and older.last_day >= newer.entry.day and len(older.subject) > 1


def _is_replaced(pair: Contradiction, claims: list[Claim], names: set[frozenset[str]]) -> bool:
    """Whether a later log says that the value has changed, or agrees with the older claim."""
    if pair.older.entry.is_long_term:
        newest = _newest(pair.older, [one for one in claims if not one.entry.is_long_term], names)
        return newest is not None and is_same_value(newest, pair.older)
    return any(
        claim.entry.day >= pair.newer.entry.day
        and claim.is_change
        and is_comparable(claim, pair.newer)
        and is_same_subject(claim.subject, pair.newer.subject, names)
        for claim in claims
    )


def is_outdated(entry: Entry, sentence: str, entries: list[Entry]) -> bool:
    """Whether a newer log has another value for what a sentence of a log claims."""
    claims = [claim for claim in find_claims(entry) if claim.sentence == sentence]
    if not claims:
        return False
    own = [one for one in entries if one.is_long_term]
    logged = [one for log in entries if not log.is_long_term for one in find_claims(log)]
    names = full_names(own)
    newest = ((claim, _newest(claim, logged, names)) for claim in claims)
    return any(newer is not None and not is_same_value(claim, newer) for claim, newer in newest)


def _newest(claim: Claim, logged: list[Claim], names: set[frozenset[str]]) -> Claim | None:
    """Return the newest claim of the logs about the same subject and attribute."""
    same = [
        one
        for one in logged
        if is_comparable(one, claim) and is_same_subject(one.subject, claim.subject, names)
    ]
    return max(same, key=lambda one: (one.entry.day, one.entry.start_line), default=None)


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


def _named_by_logs(own: list[Entry], logged: list[Claim]) -> list[Superseded]:
    """Return the entries that have the old value which a change of the logs names.

    The subject and the value must be in one entry only: "We switched from Slack to Zulip"."""
    found = list[Superseded]()
    places = {(one.entry.citation, one.value) for one in logged if one.attribute == "place"}
    for change in logged:
        if not change.before or change.attribute == "when" or not change.is_change:
            continue
        if (change.entry.citation, change.value) in places:
            continue  # who moves to another town takes nothing else along
        later = [one for one in logged if one.entry.day > change.entry.day and one.is_change]
        is_undone = any(change.phrase.casefold() == one.before.casefold() for one in later)
        value = change.before.strip("` ")
        is_name = value[:1].isupper() or "`" in change.before or value[:1].isdigit()
        is_name = is_name and len(value) > 2 and value.lower() not in FILLERS
        pattern = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)")
        holders = [
            entry
            for entry in own
            if change.subject <= wording(entry.text).words
            and len(pattern.findall(MARK.sub("", entry.text))) == 1
        ]
        if is_undone or not is_name or len(holders) != 1 or _is_marked(holders[0], change):
            continue
        replaced = _replaced(holders[0], value, change)
        if replaced is not None:
            found.append(replaced)
    return found


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
