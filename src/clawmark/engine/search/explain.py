"""Records what each step of the pipeline did and what became of every candidate."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from clawmark.engine.search.neighbours import Passage
from clawmark.engine.search.scoring import Candidate
from clawmark.model.values import CandidateStory, Step, Term, citation


class Trace:
    """Times the steps."""

    def __init__(self) -> None:
        self._began = self._last = time.perf_counter()
        self._before = 0.0
        self._steps: list[Step] = []

    def step(self, number: int, name: str, summary: str, *, before: float = 0.0) -> None:
        """Record a step that ran since the last one, plus `before` milliseconds before all of
        them."""
        now = time.perf_counter()
        self._steps.append(
            Step(
                number=number,
                name=name,
                summary=summary,
                milliseconds=(now - self._last) * 1000 + before,
            )
        )
        self._last = now
        self._before += before

    def record(self, number: int, name: str, summary: str, milliseconds: float) -> None:
        """Record a step that ran elsewhere."""
        self._steps.append(
            Step(number=number, name=name, summary=summary, milliseconds=milliseconds)
        )

    def steps(self) -> tuple[Step, ...]:
        return tuple(self._steps)

    def milliseconds(self) -> float:
        return (time.perf_counter() - self._began) * 1000 + self._before


def stories(
    candidates: Sequence[Candidate],
    passages: Sequence[Passage],
    dropped: Mapping[int, str],
    terms: Sequence[Term],
) -> tuple[CandidateStory, ...]:
    """Describe every candidate in its final order, with its factors and its outcome."""
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
        )
        for candidate in candidates
    )


def _terms_met(mask: int, terms: Sequence[Term]) -> str:
    met = [term.text for number, term in enumerate(terms) if mask >> number & 1]
    return f"{len(met)}/{len(terms)} {', '.join(met)}".rstrip()
