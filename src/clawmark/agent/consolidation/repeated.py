"""Find statements of the logs that belong in MEMORY.md: those said or used on several days."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from clawmark.agent.consolidation.entries import Entry
from clawmark.agent.consolidation.when import find_times
from clawmark.agent.consolidation.wording import (
    FEWEST_WORDS,
    Wording,
    has_same_order,
    part_wordings,
    wording,
)
from clawmark.agent.plugins.lancedb.capture_patterns import ASKS, HEDGED, REQUEST, SECRET, TRANSIENT

MOST_COVERING = 20
"""Entries with the same words that a statement is compared with."""
LONGEST = 300
"""Characters of a statement. A longer one is a story, not a fact."""

STANDING = re.compile(
    r"\b(?:is|are|has|have|lives?|works?|runs?|uses?|prefers?|likes?|loves?|hates?|dislikes?|wants?"
    r"|needs?|costs?|takes?|owns?|keeps?|speaks?|eats?|drinks?|plays?|pays?|goes|go|stays?|belongs?"
    r"|means|counts?|must|never|always|every|each|only|decided|agreed|chose|rule|not|cannot|don't"
    r"|ist|sind|hat|haben|wohnt|lebt|arbeitet|läuft|nutzt|benutzt|mag|möchte|will|braucht|kostet"
    r"|dauert|gehört|heißt|isst|trinkt|spricht|nie|niemals|immer|jede[nrsm]?|muss|müssen|nur"
    r"|entschieden|vereinbart|beschlossen|regel)\b",
    re.IGNORECASE,
)
"""A statement that still holds tomorrow has one of these words."""
_PASSING = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|this (?:morning|afternoon|evening|week|month)|next week"
    r"|last (?:week|night|month)|again|soon|later|for now|right now|at the moment|currently|finally"
    r"|heute|morgen|gestern|diese (?:woche|nacht)|nächste woche|letzte woche|bald|später|gerade"
    r"|im moment|derzeit|vorerst|endlich)\b",
    re.IGNORECASE,
)
DEPENDENT = re.compile(
    r"\A(?:it|its|they|them|their|he|him|his|she|her|this|that|these|those|then|there|because|so"
    r"|which|otherwise|also|but|and|or|one|both|es|sie|er|ihr|ihre|sein|seine|das|dies|diese|dann"
    r"|dort|weil|also|sonst|auch|aber|und|oder|beide)\b",
    re.IGNORECASE,
)
_TASK = re.compile(
    r"\A(?:to ?do|task|open|reminder|remember to|don't forget|note to self|ask|call|check|book|buy"
    r"|bring|send|order|tell|wait|watch|pick|pay|plan|prepare|wash|walk|clean|cook|read|write|look"
    r"|aufgabe|offen|erinnerung|nicht vergessen|fragen|anrufen|prüfen|kaufen|schicken|bestellen)\b",
    re.IGNORECASE,
)
_REPORT = re.compile(
    r"\A(?:[A-Z][\w'’-]+ )?(?:said|asked|called|wrote|sent|met|went|slept|swam|walked|talked|had"
    r"|was|were|did|got|made|found|finished|started|worked|read|watched|bought|cooked|ran|fixed"
    r"|deployed|released|tested|updated|sagte|fragte|rief|schrieb|traf|ging|schlief|war|hatte"
    r"|machte|fand|las|kaufte|kochte)\b"
)
"""What happened on one day, even if it happens on many."""
_PAST = re.compile(r"\A(?!Decided|Agreed|Red\b|Need|Bed|Shed|Wed)[A-Z]\w+ed\b")
"""A report without its subject: "Refunded all eleven by hand"."""
_LABEL = re.compile(
    r"\A(?:\w+ )?(?:idea|try|keep|stop|question|open|wish(?:es)?|idee|frage)\b.*: ", re.I
)
_CHAT = re.compile(
    r"!|\bi['’](?:ll|ve|m|d)\b|\bby the way\b|\A(?:user|assistant|human|system): "
    r"|\b(?:you|your|yours|thanks?|sorry|congrat\w*|gonna|wow|lol|means a lot|let me know|du|dein"
    r"|deine|dir|dich|euch|eure|danke|entschuldigung)\b",
    re.IGNORECASE,
)
"""What people say to each other."""
_MACHINE = re.compile(r"[{}<>|]|https?://|\b[\w./-]+\.(?:py|js|ts|log|json)\b|\A[^\w`\"'(]")

_ENDS = frozenset(("until", "till", "bis"))
_CLOCK = re.compile(r"\d:\d\d|\d (?:am|pm|uhr)\b", re.IGNORECASE)
_NOT_AT_START = (REQUEST, DEPENDENT, _TASK, _REPORT, _PAST, _LABEL)


class Repeated(NamedTuple):
    """A statement that belongs in MEMORY.md, and where it was said."""

    text: str
    """The newest wording, one sentence."""
    entries: tuple[Entry, ...]
    """The entries that say it, the newest first, one for each day."""
    used: int = 0
    """On how many days an agent used it; 0 if it is here because it was repeated."""


def find_repeated(
    entries: list[Entry], min_days: int, used_days: Callable[[Entry], int] = lambda entry: 0
) -> list[Repeated]:
    """Return the statements of the logs that were said, or used by an agent, on enough days.

    What MEMORY.md says already is left out, and so is what would be junk there: chatter, tasks,
    reports of a day, guesses, questions and statements that need the ones around them."""
    covered = dict[Wording, list[str]]()
    for entry in entries:
        for part in part_wordings(entry.text) if entry.is_long_term else ():
            texts = covered.setdefault(part, [])
            if len(texts) < MOST_COVERING:
                texts.append(entry.text)
    clusters = _Clusters()
    for entry in entries:
        if entry.is_long_term or entry.box:
            continue
        for sentence in entry.sentences:
            if is_worth_keeping(sentence):
                clusters.add(sentence, entry)
    found = list[Repeated]()
    for cluster in clusters.all:
        days = {entry.day: entry for _, entry in cluster if entry.day}
        used = max(used_days(entry) for _, entry in cluster)
        if len(days) < min_days and used < min_days:
            continue
        text = cluster[-1][0]
        said = {one for one, _ in cluster}
        if any(has_same_order(own, one) for one in said for own in covered.get(wording(one), ())):
            continue
        newest = tuple(days[day] for day in sorted(days, reverse=True))
        found.append(Repeated(text, newest, used if len(days) < min_days else 0))
    return found


def is_worth_keeping(sentence: str) -> bool:
    """Whether a statement can stand alone and still holds on another day."""
    plain = sentence.strip()
    if len(plain) > LONGEST or len(wording(plain).words) < FEWEST_WORDS:
        return False
    if plain.endswith(("?", ":", "…", "...")) or ASKS.match(plain) or HEDGED.search(plain):
        return False
    if any(pattern.match(plain) for pattern in _NOT_AT_START):
        return False
    if any(pattern.search(plain) for pattern in (SECRET, TRANSIENT, _PASSING, _CHAT, _MACHINE)):
        return False
    if any(time.kind in ("day", "month") for time in find_times(plain, "")):
        return False  # what happens on a day is over after it
    if wording(plain).limits & _ENDS and find_times(plain, "") and not _CLOCK.search(plain):
        return False
    return STANDING.search(plain) is not None


class _Clusters:
    """Statements that say the same, or of which one covers the other."""

    def __init__(self) -> None:
        self.all = list[list[tuple[str, Entry]]]()
        self._by_whole = dict[Wording, int]()
        self._by_part = dict[Wording, int]()

    def add(self, sentence: str, entry: Entry) -> None:
        """Add a statement to the cluster that it belongs to, or to a new one."""
        whole, parts = wording(sentence), part_wordings(sentence)
        same = [self._by_part.get(whole), *map(self._by_whole.get, parts)]
        known = {one for one in same if one is not None}
        known = {one for one in known if has_same_order(self.all[one][0][0], sentence)}
        number = min(known, default=len(self.all))
        if number == len(self.all):
            self.all.append([])
        self.all[number].append((sentence, entry))
        self._by_whole.setdefault(whole, number)
        for part in parts:
            if part.size >= FEWEST_WORDS:
                self._by_part.setdefault(part, number)
