"""Find out what the search pipeline does with one passage, and at which step it is dropped.

The pipeline runs twice over the same snapshot: as the user asked, and with the passage as a
candidate in any case, which tells what it would have scored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from clawmark.engine.search.legs import Asked, any_term
from clawmark.model.explanation import CandidateStory
from clawmark.model.values import NO_FILTERS, ChunkRow, Filters, Found, Query, citation
from clawmark.model.why_not import LegRank, Outcome
from clawmark.store.base import SearchSnapshot, Snapshot
from clawmark.text.globs import path_matcher
from clawmark.text.keywords.query import query_terms

MOST_PASSAGES = 200
"""Passages of one file that are judged; the first ones."""
MOST_RESULTS = 100
"""The most results that are suggested."""

Run = Callable[[Query, Sequence[int]], Found]
"""Runs the pipeline over the snapshot; the passages with the given keys are judged in any case."""


class Judging(NamedTuple):
    """What is needed to judge passages: they, a snapshot, and the pipeline over it."""

    query: Query
    rows: Sequence[ChunkRow]
    snapshot: Snapshot
    asked: Asked
    run: Run


class Judged(NamedTuple):
    """What the pipeline did with the passage that came closest."""

    row: ChunkRow
    outcome: Outcome
    step: int
    reason: str
    """The filter that dropped it, or the number of the hit it is part of."""
    rank: int
    story: CandidateStory
    words: LegRank
    meaning: LegRank
    found: Found
    """The answer to the query as it was asked."""


class Settings(NamedTuple):
    """The settings with which a passage becomes a hit."""

    min_score: float
    max_results: int


def judge(
    query: Query, rows: Sequence[ChunkRow], snapshot: SearchSnapshot, asked: Asked, run: Run
) -> Judged:
    """Return what became of the passages, by the one that came closest to being a hit."""
    rows = rows[:MOST_PASSAGES]
    query = query._replace(explain=True)
    found = run(query, ())
    forced = run(query._replace(filters=NO_FILTERS), [row.key for row in rows])
    by_name = {_name(row): row for row in rows}
    asked_stories = [one for one in _stories(found) if one.citation in by_name]
    any_story = next(one for one in _stories(forced) if one.citation in by_name)
    story = asked_stories[0] if asked_stories else any_story
    row = by_name[story.citation]
    limit = query.candidates
    words, meaning = leg_ranks(query, snapshot, asked, row.key, limit)
    outcome, step, reason = _outcome(
        query, row, asked_stories[0] if asked_stories else None, (words, meaning)
    )
    names = [one.citation for one in _stories(found if asked_stories else forced)]
    return Judged(
        row=row,
        outcome=outcome,
        step=step,
        reason=reason,
        rank=names.index(story.citation) + 1,
        story=story,
        words=words,
        meaning=meaning,
        found=found,
    )


def _outcome(
    query: Query, row: ChunkRow, story: CandidateStory | None, legs: tuple[LegRank, LegRank]
) -> tuple[Outcome, int, str]:
    """Return what became of a passage, the step that decided, and the detail of it."""
    if story is not None:
        verb, _, number = story.outcome.rpartition(" ")
        if verb == "hit":
            return "hit", 8, number
        if verb in ("joined to hit", "lies in hit"):
            return "part-of-hit", 8, number
        return ("after-the-last" if verb == "after the first" else "below-threshold"), 8, ""
    failing = failing_filter(row, query.filters)
    if failing:
        return "filtered-out", 1, failing
    if any(leg.is_taken for leg in legs):
        return "not-merged", 5, ""
    return "not-found", 4, ""


def failing_filter(row: ChunkRow, filters: Filters) -> str:
    """Return the first filter that a passage does not pass, such as `since`; empty if it passes
    all."""
    prefix = f"{filters.source.lower()}:"
    if filters.source and row.source != filters.source and not row.path.lower().startswith(prefix):
        return "source"
    if filters.path and not path_matcher(filters.path)(row.path):
        return "path"
    if filters.since and row.last_day < filters.since:
        return "since"
    if filters.until and not (row.first_day and row.first_day <= filters.until):
        return "until"
    return ""


def leg_ranks(
    query: Query, snapshot: SearchSnapshot, asked: Asked, key: int, limit: int
) -> tuple[LegRank, LegRank]:
    """Return the rank of a passage by words and by meaning, however low it is."""
    total = snapshot.count_chunks()
    terms = query_terms(query.text)
    words = snapshot.search_keywords(any_term(terms), total) if terms else []
    meaning = list[tuple[int, float]]()
    ready = {space.id for space in snapshot.spaces()}
    usable = [one for one in asked.vectors if one[1].id in ready]
    if usable:
        _, space, vector = usable[0]
        meaning = snapshot.nearest(space.id, vector, total)
    return _leg_rank(words, key, limit), _leg_rank(meaning, key, limit)


def _leg_rank(found: Sequence[tuple[int, float]], key: int, limit: int) -> LegRank:
    rank = next((number for number, (one, _) in enumerate(found, 1) if one == key), 0)
    return LegRank(rank, len(found), limit)


def settings_for(query: Query, judged: Judged, run: Run) -> Settings | None:
    """Return a lower threshold and a larger number of results with which the passage is a hit, or
    a part of one; None if there are none.

    They were tried."""
    lowest = min(query.min_score, int(judged.story.score * 100) / 100)
    wide = query._replace(explain=True, min_score=lowest, max_results=MOST_RESULTS)
    place = _hit_number(run(wide, ()), judged.row)
    if not place:
        return None
    needed = Settings(lowest, max(place, query.max_results))
    narrow = wide._replace(max_results=needed.max_results)
    return needed if _hit_number(run(narrow, ()), judged.row) else None


def _hit_number(found: Found, row: ChunkRow) -> int:
    """Return the number of the hit that shows a passage; 0 if there is none."""
    for number, hit in enumerate(found.hits, 1):
        if hit.path == row.path and hit.start_line <= row.start_line <= hit.end_line:
            return number
    return 0


def rarest_words(row: ChunkRow, query: Query, snapshot: SearchSnapshot, most: int = 3) -> list[str]:
    """Return the rarest words of a passage that the query does not have."""
    known = {term.phrase for term in query_terms(query.text)}
    terms = [
        term
        for term in query_terms(row.text[:4000])
        if term.phrase not in known and term.text.isalpha() and len(term.text) > 3
    ]
    counts = snapshot.count_keywords([any_term([term]) for term in terms]).matches
    ranked = sorted(zip(counts, range(len(terms)), strict=True))
    return [terms[number].text for count, number in ranked if count][:most]


def _stories(found: Found) -> tuple[CandidateStory, ...]:
    return found.explanation.candidates if found.explanation is not None else ()


def _name(row: ChunkRow) -> str:
    return citation(row.path, row.start_line, row.end_line)
