"""Ranks the best candidates again by their single lines: which says most about the query, and
whether it is stated or only asked.

A question without an answer is not evidence for itself, so the vector of a passage counts in
proportion to how much the passage states. The best line that states something, and the best
statement of the user, count on their own: a short remark would otherwise be lost among long lines.

Embedding lines is expensive, so it is done in batches and stops when the results are full. Every
hit has its whole evidence; only candidates behind the last hit may lack that of their lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from clawmark.engine.search.neighbours import join_neighbours
from clawmark.engine.search.scoring import BIAS, MOST_VECTOR, Candidate, confidence, ranked
from clawmark.engine.search.snippet import Spotter, pieces_of
from clawmark.model.values import Query, Vector
from clawmark.text.transcripts.dialogue import Statements, find_statements, without_note_header

BATCH = 1.5
"""How many candidates per requested result have their lines judged at a time."""
MOST_LINES = 5
SHORTEST_LINE = 12
Compare: TypeAlias = Callable[[Sequence[str]], list[float]]
"""Returns the vector evidence of each line."""


class Nearness:
    """Compares lines with the query in meaning, each line once."""

    def __init__(
        self,
        query: Vector,
        embed: Callable[[Sequence[str]], Sequence[Vector]],
        evidence: Callable[[float], float],
    ) -> None:
        """`evidence` turns a cosine into vector evidence."""
        self._query, self._embed, self._evidence = query, embed, evidence
        self.known: dict[str, float] = {}
        """The vector evidence of every line compared so far."""

    def __call__(self, lines: Sequence[str]) -> list[float]:
        # Imported late: a search by keywords does not need it.
        from clawmark.store.similarity import cosines

        new = [line for line in dict.fromkeys(lines) if line not in self.known]
        for line, cosine in zip(new, cosines(self._query, self._embed(new)), strict=True):
            self.known[line] = self._evidence(cosine)
        return [self.known[line] for line in lines]


def weigh_statements(
    query: Query,
    candidates: Sequence[Candidate],
    spotter: Spotter,
    nearness: Compare | None,
    bias: float = BIAS,
    *,
    judge_all: bool = False,
) -> list[Candidate]:
    """Return the candidates with the evidence of their statements, best first.

    `judge_all` judges the lines of every candidate, for a caller that changes the order or the
    scores afterwards."""
    said: dict[int, Statements] = {}
    waiting = []
    for one in candidates:
        text = without_note_header(one.row.text)
        found = said[one.row.key] = find_statements(text)
        if found.share < 1.0 or found.by_user or len(text) < len(one.row.text):
            share = found.share * len(text) / len(one.row.text)
            one = _with_statements(query, one, found._replace(share=share), spotter, nearness, bias)
        waiting.append(one)
    waiting = ranked(waiting)
    if nearness is None:
        return waiting
    batch = len(waiting) if judge_all else math.ceil(BATCH * query.max_results)
    judged: dict[int, Candidate] = {}
    while waiting:
        judged |= _with_lines(query, waiting[:batch], said, spotter, nearness, bias, judge_all)
        waiting = waiting[batch:]
        order = ranked([*judged.values(), *waiting])
        passages, _ = join_neighbours(order[: len(judged)], query.max_results, query.min_score)
        if len(passages) == query.max_results and all(
            passage.best.row.key in judged for passage in passages
        ):
            return order
    return ranked(list(judged.values()))


def _with_lines(
    query: Query,
    candidates: Sequence[Candidate],
    said: Mapping[int, Statements],
    spotter: Spotter,
    nearness: Compare,
    bias: float,
    judge_all: bool,
) -> dict[int, Candidate]:
    """Return the candidates by key, with the evidence of their best line where it can matter; the
    lines of all of them are embedded at once."""
    lines = {
        one.row.key: _lines(said[one.row.key].text, spotter)
        for one in candidates
        if judge_all or one.is_exact or _can_reach_threshold(query, one, bias)
    }
    near = iter(nearness([line for some in lines.values() for line in some]))
    best = {key: max([next(near) for _ in some], default=0.0) for key, some in lines.items()}
    return {
        one.row.key: _scored(query, one._replace(line=best[one.row.key]), bias)
        if one.row.key in best
        else one
        for one in candidates
    }


def _with_statements(
    query: Query,
    candidate: Candidate,
    said: Statements,
    spotter: Spotter,
    nearness: Compare | None,
    bias: float,
) -> Candidate:
    """Reduce the vector by how little the candidate states, and add the evidence of the user's
    statements."""
    text, share = candidate.row.text, said.share
    if share < 1.0:
        # The words of questions and of the header of a session note are not in the text evidence,
        # but the vector was made of the whole passage.
        share = min(1.0, 2.0 * share)
        states_terms = spotter.weight(said.text) >= spotter.weight(text)
        candidate = candidate._replace(
            vector=candidate.vector * share,
            stated=share,
            is_exact=candidate.is_exact and states_terms,
        )
    user = _best(nearness, said.by_user) if nearness else 0.0
    return _scored(query, candidate._replace(user=user), bias)


def _can_reach_threshold(query: Query, candidate: Candidate, bias: float) -> bool:
    if candidate.score >= query.min_score:
        return True
    return _scored(query, candidate._replace(line=MOST_VECTOR), bias).score >= query.min_score


def _scored(query: Query, candidate: Candidate, bias: float) -> Candidate:
    # What a small memory or an index without vectors adds also depends on what is stated.
    return candidate._replace(
        score=confidence(candidate, query, BIAS + candidate.stated * (bias - BIAS))
    )


def _lines(text: str, spotter: Spotter) -> list[str]:
    """The lines of a passage that state something; of many, those with the query's words and the
    first ones."""
    pieces = pieces_of(text)
    lines = [
        line for line in pieces if len(line) > SHORTEST_LINE and not line.rstrip().endswith("?")
    ]
    if len(lines) > MOST_LINES:
        lines = sorted(lines, key=spotter.count, reverse=True)[:MOST_LINES]
    return lines


def _best(nearness: Compare, lines: Sequence[str]) -> float:
    return max(nearness(lines), default=0.0) if lines else 0.0
