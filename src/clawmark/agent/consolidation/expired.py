"""Find entries of MEMORY.md that are over: dates that have passed, and tasks that are done."""

from __future__ import annotations

import re
from typing import NamedTuple

from clawmark.agent.consolidation.claims import MARK
from clawmark.agent.consolidation.entries import Entry
from clawmark.agent.consolidation.when import find_times
from clawmark.agent.consolidation.wording import FEWEST_WORDS, Wording, bare, wording

COMING = re.compile(
    r"\b(?:coming up|upcoming|agenda|calendar|appointments?|deadlines?|reminders?|schedule"
    r"|next (?:days|weeks|steps)|to ?-?dos?|tasks?|anstehend\w*|bevorstehend\w*|termine?"
    r"|kalender|fristen|erinnerungen|aufgaben)\b",
    re.IGNORECASE,
)
"""Headings of lists that are about what is still to come."""
_DATED = re.compile(r"\A(?:\*\*|__)?(?=\d{4}-\d\d-\d\d|\d{1,2}\.? ?\w)")
_END = re.compile(
    r"\b(?P<word>until|till|through|valid (?:until|through)|expires?(?: on)?|ends?(?: on)?"
    r"|due(?: on| by)?|deadline(?: is| on|:)?|by|bis(?: zum| einschließlich)?|gültig bis"
    r"|fällig(?: am)?|spätestens(?: am)?) (?:the |den |dem |end of |ende )?",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(?:was|were|had|did|used|lived|worked|ran|kept|stayed|took|went|since|war|waren|hatte"
    r"|hatten|wurde|wurden|wohnte|arbeitete|lief|seit|last|letzte[rns]?)\b",
    re.IGNORECASE,
)
_PRESENT = re.compile(
    r"\b(?:is|are|am|has|have|will|must|needs?|should|may|can|do not|don't|never|no|off|away|away"
    r"|closed|open|free|valid|due|deadline|on (?:holiday|leave|vacation)|takes?|stays?|ist|sind|hat"
    r"|haben|muss|müssen|soll|wird|bleibt|gilt|frei|krank|urlaub|geschlossen|fällig|frist"
    r"|ends?|expires?)\b",
    re.IGNORECASE,
)
_ONCE = ("until", "till", "bis")
_RECURRING = re.compile(
    r"\b(?:every|each|always|usually|weekly|monthly|yearly|annual(?:ly)?|jede[nrsm]?|immer"
    r"|wöchentlich|monatlich|jährlich)\b|(?:day|tag)s\b",
    re.IGNORECASE,
)
_DONE = re.compile(r"\A(?:done|finished|erledigt|fertig)\b[:,]? ?", re.IGNORECASE)


class Expired(NamedTuple):
    """An entry that can be removed, and why."""

    entry: Entry
    reason: str
    evidence: tuple[Entry, ...] = ()
    """The log entries that show it, besides the entry itself."""


def find_expired(entries: list[Entry], today: str) -> list[Expired]:
    """Return the entries of MEMORY.md that are over on a day."""
    done = dict[Wording, Entry]()
    for entry in entries:
        if not entry.is_long_term and (entry.box == "x" or _DONE.match(entry.plain)):
            done.setdefault(wording(_DONE.sub("", entry.plain)), entry)
    found = list[Expired]()
    for entry in entries:
        if not entry.is_long_term:
            continue
        expired = _finished_task(entry, done) or _over(entry, today)
        if expired is not None:
            found.append(expired)
    return found


def _over(entry: Entry, today: str) -> Expired | None:
    """Return an entry whose only sentence names an end that has passed."""
    plain = MARK.sub("", entry.plain)
    if "\n" in entry.text.strip() and re.search(r"\n\s+[-*+] ", entry.text):
        return None  # an entry with nested entries is about more than one thing
    if COMING.search(entry.heading):
        times = [time for time in find_times(plain, entry.day) if time.kind in ("day", "month")]
        is_dated = _DATED.match(plain) and times and times[0].start <= 2
        if is_dated and all(time.last for time in times):
            last = max(time.last for time in times)
            is_over = _year_before(today) < last < today  # earlier ones are birthdays and the like
            return Expired(entry, f"The date has passed: {last}") if is_over else None
    if len(entry.sentences) != 1 or _PAST.search(plain) or not _PRESENT.search(plain):
        return None
    times = find_times(plain, entry.day)
    for end in _END.finditer(plain):
        at = next((time for time in times if time.start == end.end()), None)
        if at is None or not at.last or any(time.last > at.last for time in times):
            continue
        if at.kind == "weekday" and (len(times) > 1 or end["word"].lower() not in _ONCE):
            continue  # "Monday through Friday", "due by Friday": every week
        if at.last < today and not _RECURRING.search(plain):
            shown = plain[end.start() : at.end]
            return Expired(entry, f"It has ended: {shown!r} was {at.last}")
    return None


def _year_before(today: str) -> str:
    return f"{int(today[:4]) - 1:04}{today[4:]}"


def _finished_task(entry: Entry, done: dict[Wording, Entry]) -> Expired | None:
    """Return a task that its box or a log says to be done."""
    if entry.box == "x":
        return Expired(entry, "The task is done: its box is ticked")
    if not entry.box:
        return None
    wanted = wording(bare(entry.text))
    log = done.get(wanted) if len(wanted.words) >= FEWEST_WORDS - 1 else None
    if log is None:
        return None
    return Expired(entry, f"The log of {log.day} says that it is done", (log,))
