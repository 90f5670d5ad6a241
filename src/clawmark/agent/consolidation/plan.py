"""Plan the changes of MEMORY.md: one hunk for each finding, with its reason and its evidence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from clawmark.agent.consolidation.claim_index import ClaimIndex
from clawmark.agent.consolidation.duplicates import find_duplicates
from clawmark.agent.consolidation.entries import LONG_TERM, Entry, SourceText
from clawmark.agent.consolidation.expired import COMING, find_expired
from clawmark.agent.consolidation.repeated import Repeated, find_repeated
from clawmark.agent.consolidation.superseded import find_superseded, is_outdated
from clawmark.agent.consolidation.wording import tokens_of, wording
from clawmark.agent.review.hunks import CONTEXT_LINES, Hunk, split_lines

NEW_SECTION = "Notes"
"""Where a statement is added that fits none of the sections."""
MIN_DAYS = 3
"""On how many days a statement must be said or used to be promoted."""
MOST_PLACES = 2_000
"""Entries of MEMORY.md that are compared with a statement to find its section, the first ones."""
ChangeKind: TypeAlias = Literal["duplicate", "superseded", "expired", "promoted"]

_PERSON = re.compile(
    r"(?:(?:Mr|Mrs|Ms|Dr|Prof|Herr|Frau|Madame|Monsieur)\.? )?[A-ZÀ-Þ][a-zß-ÿ'’-]+ "
    r"(?:[A-ZÀ-Þ][a-zß-ÿ'’-]+ |(?<=Frau )|(?<=Herr ))"
)
_PEOPLE = re.compile(
    r"\b(?:people|persons?|contacts?|team|colleagues|leute|personen|kontakte|kollegen)\b", re.I
)


class Change(NamedTuple):
    """A proposed change of MEMORY.md, and the entries that it is based on."""

    kind: ChangeKind
    hunk: Hunk
    evidence: tuple[Entry, ...]


def plan(
    page: SourceText,
    entries: list[Entry],
    today: str,
    *,
    min_days: int = MIN_DAYS,
    used_days: Callable[[Entry], int] = lambda entry: 0,
) -> tuple[Change, ...]:
    """Return the changes that the entries of MEMORY.md and of the logs give reason for.

    An entry is changed by one of them at most: what is over is removed, even if it is also said
    twice."""
    lines = split_lines(page.text)
    index = ClaimIndex(entries)
    changes = dict[str, Change]()
    for change in (*_expired(entries, today, lines), *_superseded(index, lines)):
        changes.setdefault(change.evidence[0].citation, change)
    for change in _duplicates(entries, lines):
        if not any(one.citation in changes for one in change.evidence):
            changes[change.evidence[0].citation] = change
    kept = [entry for entry in entries if not _is_removed(changes.get(entry.citation))]
    found = find_repeated(kept, min_days, used_days)
    current = [one for one in found if not is_outdated(one.entries[0], one.text, index)]
    promoted = promotions(current, kept, page)
    ordered = [*changes.values(), *promoted]
    return tuple(sorted(ordered, key=lambda change: change.hunk.start_line))


def _is_removed(change: Change | None) -> bool:
    return change is not None and not change.hunk.new


def _expired(entries: list[Entry], today: str, lines: list[str]) -> Iterator[Change]:
    for found in find_expired(entries, today):
        evidence = (found.entry, *found.evidence)
        yield Change("expired", _removal(found.entry, lines, found.reason, evidence), evidence)


def _duplicates(entries: list[Entry], lines: list[str]) -> Iterator[Change]:
    for found in find_duplicates(entries):
        evidence = (found.entry, found.kept)
        reason = f"Line {found.kept.start_line} says the same"
        yield Change("duplicate", _removal(found.entry, lines, reason, evidence), evidence)


def _superseded(index: ClaimIndex, lines: list[str]) -> Iterator[Change]:
    for found in find_superseded(index):
        entry, newer = found.entry, found.by.entry
        hunk = Hunk(
            path=LONG_TERM,
            old="\n".join(lines[entry.start_line - 1 : entry.end_line]),
            new=found.text,
            reason=f'The log of {newer.day} says: "{found.by.sentence}"',
            citations=(newer.citation, entry.citation),
            before=_context(lines, entry.start_line - 1 - CONTEXT_LINES, entry.start_line - 1),
            after=_context(lines, entry.end_line, entry.end_line + CONTEXT_LINES),
            start_line=entry.start_line,
        )
        yield Change("superseded", hunk, (entry, newer))


def _removal(entry: Entry, lines: list[str], reason: str, evidence: tuple[Entry, ...]) -> Hunk:
    """Return the hunk that removes an entry, and the blank line that would be left double."""
    start, end = entry.start_line - 1, entry.end_line
    is_apart = start > 0 and not lines[start - 1].strip()
    if is_apart and end < len(lines) and not lines[end].strip():
        end += 1
    return Hunk(
        path=LONG_TERM,
        old="\n".join(lines[start:end]),
        new="",
        reason=reason,
        citations=tuple(dict.fromkeys(one.citation for one in reversed(evidence))),
        before=_context(lines, start - CONTEXT_LINES, start),
        after=_context(lines, end, end + CONTEXT_LINES),
        start_line=entry.start_line,
    )


# --- Promotion ---


def promotions(found: Sequence[Repeated], kept: list[Entry], page: SourceText) -> Iterator[Change]:
    """Yield the changes that add statements to MEMORY.md, each to the section it belongs to."""
    lines = split_lines(page.text)
    own = [entry for entry in kept if entry.is_long_term][:MOST_PLACES]
    is_new = not any(re.match(rf"##? {NEW_SECTION}\s*$", line) for line in lines)
    for repeated in found:
        at = _section_end(repeated.text, own, lines)
        new = f"- {repeated.text}"
        if at is None:
            at = len(lines)
            if is_new:
                title = [] if lines else ["# Memory", ""]
                gap = [""] if lines and lines[-1].strip() else []
                new = "\n".join([*title, *gap, f"## {NEW_SECTION}", "", new])
                is_new = False
        hunk = Hunk(
            path=LONG_TERM,
            old="",
            new=new,
            reason=_promotion_reason(repeated),
            citations=tuple(entry.citation for entry in repeated.entries),
            before=_context(lines, at - CONTEXT_LINES, at),
            after=_context(lines, at, at + CONTEXT_LINES),
            start_line=at + 1,
        )
        yield Change("promoted", hunk, repeated.entries)


def _promotion_reason(repeated: Repeated) -> str:
    if repeated.used:
        return f"Used on {repeated.used} days, and not in {LONG_TERM} yet"
    days = sorted(entry.day for entry in repeated.entries)
    if len(days) == 1:
        return f"Said on {days[0]}"
    return f"Said on {len(days)} days: {', '.join(days)}"


def _section_end(text: str, own: list[Entry], lines: list[str]) -> int | None:
    """Return the line after the section that a statement belongs to; None if there is none.

    A statement about a person goes to the people. Any other goes where an entry has most words in
    common with it; an entry about the same thing starts with the same word."""
    if _PERSON.match(text):
        people = [entry.end_line for entry in own if _PEOPLE.search(entry.heading)]
        if people:
            return max(people)
    words, first = wording(text).words, next(iter(tokens_of(text)), "")
    best, most = None, 1
    for entry in own:
        if COMING.search(entry.heading):
            continue
        is_about = next(iter(tokens_of(entry.plain)), "") == first
        shared = len(words & wording(entry.text).words) + 3 * is_about
        shared += 2 * bool(words & wording(entry.heading).words)
        if shared > most:
            best, most = entry, shared
    if best is None:
        return None
    same = [entry for entry in own if entry.heading == best.heading]
    return max(entry.end_line for entry in same)


def _context(lines: list[str], start: int, end: int) -> str:
    return "\n".join(lines[max(0, start) : max(0, end)])
