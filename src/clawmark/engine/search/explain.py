"""Explains a search: what each step of the pipeline did and what became of every candidate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from clawmark.engine.search.neighbours import Passage
from clawmark.engine.search.scoring import (
    BIAS,
    DEFAULT_TEXT_WEIGHT,
    DEFAULT_VECTOR_WEIGHT,
    LINE,
    NAME,
    TEXT,
    USER,
    Candidate,
)
from clawmark.engine.search.time_preference import BONUS
from clawmark.engine.search.trace import RecordedStep
from clawmark.model.explanation import CandidateStory, Explanation, Factor, Step
from clawmark.model.values import Query, Term, citation


def explanation(
    steps: Iterable[RecordedStep], candidates: tuple[CandidateStory, ...] = (), passages: int = 0
) -> Explanation:
    """Return the explanation of an answer: the steps of its trace, and what `stories` says."""
    return Explanation(tuple(map(Step._make, steps)), candidates, passages)


def stories(
    candidates: Sequence[Candidate],
    passages: Sequence[Passage],
    dropped: Mapping[int, str],
    terms: Sequence[Term],
    query: Query,
    bias: float,
) -> tuple[CandidateStory, ...]:
    """Describe every candidate in its final order, with its factors and its outcome."""
    has_words = any(candidate.mask for candidate in candidates)
    hits = {passage.best.row.key: number for number, passage in enumerate(passages, 1)}
    return tuple(
        CandidateStory(
            citation=citation(candidate.row.path, candidate.row.start_line, candidate.row.end_line),
            vector=candidate.vector,
            vector_space=candidate.space,
            text=candidate.text,
            name=candidate.name,
            line=candidate.line,
            user=candidate.user,
            stated=candidate.stated,
            bm25=candidate.bm25,
            terms=_terms_met(candidate.mask, terms),
            decay=candidate.decay,
            score=candidate.score,
            outcome=f"hit {hits[candidate.row.key]}"
            if candidate.row.key in hits
            else dropped.get(candidate.row.key, ""),
            when=candidate.when,
            rerank=candidate.rerank,
            factors=weighted_factors(candidate, query, has_words=has_words)
            if query.fusion == "weighted"
            else factors(candidate, query, bias),
        )
        for candidate in candidates
    )


def _terms_met(mask: int, terms: Sequence[Term]) -> str:
    met = [term.text for number, term in enumerate(terms) if mask >> number & 1]
    return f"{len(met)}/{len(terms)} {', '.join(met)}".rstrip()


def factors(candidate: Candidate, query: Query, bias: float) -> tuple[Factor, ...]:
    """Return what the confidence of a candidate adds up from."""
    words = query.text_weight / DEFAULT_TEXT_WEIGHT
    meaning = query.vector_weight / DEFAULT_VECTOR_WEIGHT
    return (
        _factor("base", 1.0, BIAS + candidate.stated * (bias - BIAS)),
        _factor("text", candidate.text, TEXT * words),
        _factor("name", candidate.name, NAME * words),
        _factor("vector", candidate.vector, candidate.meaning * meaning),
        _factor("line", candidate.line, LINE * meaning),
        _factor("user", candidate.user, USER * meaning),
    )


def weighted_factors(candidate: Candidate, query: Query, *, has_words: bool) -> tuple[Factor, ...]:
    """The same for the published score, the weighted sum of two scores."""
    if not candidate.space:
        return (_factor("text", candidate.text, 1.0),)
    if not has_words:
        return (_factor("vector", candidate.vector, 1.0),)
    return (
        _factor("text", candidate.text, query.text_weight),
        _factor("vector", candidate.vector, query.vector_weight),
    )


def score_of(story: CandidateStory) -> float:
    """Return the score that the factors of a candidate add up to, with its bonus for a named time
    and its age; a reranker moves scores between candidates afterwards."""
    total = sum_of(story.factors)
    is_confidence = any(factor.name == "base" for factor in story.factors)
    score = 1.0 / (1.0 + math.exp(-total)) if is_confidence else total
    return (score + BONUS * (1.0 - score) * story.when) * story.decay


def sum_of(given: Iterable[Factor]) -> float:
    """Return the sum of the points."""
    return sum(factor.points for factor in given)


def _factor(name: str, value: float, weight: float) -> Factor:
    return Factor(name=name, value=value, weight=weight, points=value * weight)
