"""The claims of MEMORY.md and of the logs, read once and grouped by what they are about.

Each entry is read once, and a claim is compared only with claims about the same subject and kind of
value, of which a bounded number is kept: the work grows with the number of entries, not with its
square."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from clawmark.agent.consolidation.claims import (
    Claim,
    find_claims,
    full_names,
    is_comparable,
    time_kind,
)
from clawmark.agent.consolidation.entries import Entry

ClaimKey: TypeAlias = tuple[str, frozenset[str]]
"""The kind of value (`when`, `amount euro`) and the subject, a first name as the full one."""
MOST_KINDS = 50
"""Forms of one kind of value that are told apart: euros, euros a month, euros a month per seat."""


class ClaimIndex:
    """What the entries claim."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.own_entries = list[Entry]()
        self.own, self.logged = list[Claim](), list[Claim]()
        self._by_sentence = dict[tuple[str, str], list[Claim]]()
        for entry in entries:
            if entry.is_long_term:
                self.own_entries.append(entry)
            for claim in find_claims(entry):
                (self.own if entry.is_long_term else self.logged).append(claim)
                self._by_sentence.setdefault((entry.citation, claim.sentence), []).append(claim)
        self._full_names = dict[str, list[frozenset[str]]]()
        for name in full_names(self.own_entries):
            for word in name:
                self._full_names.setdefault(word, []).append(name)
        self._newest = dict[ClaimKey, dict[tuple[str, str], Claim]]()
        for claim in self.logged:
            self._add(claim)
        self.divided = {entry.heading for entry in self.own_entries if entry.is_title}
        """The headings of MEMORY.md whose list has several parts."""
        self._values = dict[ClaimKey, set[str]]()
        for claim in self.own:
            self._values.setdefault(self.key(claim), set()).add(claim.value)

    def key(self, claim: Claim) -> ClaimKey:
        """Return what a claim is about."""
        return " ".join(claim.attribute.split()[:2]), self.subject(claim.subject)

    def subject(self, subject: frozenset[str]) -> frozenset[str]:
        """Return the full name that a first name stands for; any other subject as it is."""
        full = self._full_names.get(next(iter(subject)), []) if len(subject) == 1 else []
        return full[0] if len(full) == 1 else subject

    def newest(self, claim: Claim) -> Claim | None:
        """Return the newest claim of the logs about the same subject and attribute."""
        kinds = self._newest.get(self.key(claim), {}) if claim.subject else {}
        same = [one for one in kinds.values() if is_comparable(one, claim)]
        return max(same, key=_age, default=None)

    def is_ambiguous(self, claim: Claim) -> bool:
        """Whether MEMORY.md has more than one value for what a claim is about."""
        return len(self._values.get(self.key(claim), ())) > 1

    def of_sentence(self, entry: Entry, sentence: str) -> list[Claim]:
        return self._by_sentence.get((entry.citation, sentence), [])

    def _add(self, claim: Claim) -> None:
        kinds = self._newest.setdefault(self.key(claim), {})
        kind = (claim.attribute, time_kind(claim.value) if claim.attribute == "when" else "")
        known = kinds.get(kind)
        if known is None and len(kinds) >= MOST_KINDS:
            return
        if known is None or _age(known) < _age(claim):
            kinds[kind] = claim


def _age(claim: Claim) -> tuple[str, int]:
    return claim.entry.day, claim.entry.start_line
