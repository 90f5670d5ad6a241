"""Brings the two legs onto one scale and adds them up: `vectorWeight * vector + textWeight * text`, both in 0..1.

The weights are the published 0.7/0.3; what makes them work is what goes in. The text score is BM25 relative to the best
match of this query, times the share of the query's terms that were met, weighted by how rare each term is. The vector
score is the cosine between the model's own floor (unrelated texts) and ceiling (a perfect answer).
"""

from collections.abc import Mapping, Sequence

from clawmark.types import ChunkRow, Query
from clawmark.values import NamedTuple

# Answers lie in the upper half of a model's range, so the scale is bent to give them room above the threshold: with 0.35 as
# the minimum score, recall@6 is 0.91 on locomo and on notes, where a straight line from 0.5 left 0.88 and 0.86. The price:
# on four pairs of data sets, questions about something else entirely found something in 8 to 29 % of cases. (Trials, see
# docs/explanation/scoring.md.)
CURVE = 0.7


class TextMatch(NamedTuple):
    """What the keyword leg knows of one chunk."""

    bm25: float
    mask: int
    """Bit n is set when the chunk meets the query's n-th term."""


class VectorMatch(NamedTuple):
    """What the vector leg knows of one chunk."""

    score: float
    space: str


class Candidate(NamedTuple):
    """One chunk on its way through the pipeline."""

    row: ChunkRow
    vector: float
    space: str
    text: float
    bm25: float
    mask: int
    decay: float
    score: float
    is_exact: bool
    """Meets every term of the query: never lost to the threshold."""
    when: float = 0.0
    """How well its days agree with a time named in the question; see `when`."""
    rerank: float | None = None
    """What the reranker made of it; nothing when it was not asked."""


def calibrate(cosine: float, floor: float, ceiling: float) -> float:
    """A cosine as a claim between 0 (no better than chance) and 1 (as close as answers get)."""
    return float(min(1.0, max(0.0, (cosine - floor) / (ceiling - floor))) ** CURVE)


def term_weights(counts: Sequence[int]) -> list[float]:
    """How much meeting each term says, by how few of the candidates meet it; the weights sum to 1.

    Ranks as a logarithmic weight does on locomo, notes and longmemeval, and needs no `math`, which costs 0.4 ms to load.
    """
    raw = [(count + 1) ** -0.5 for count in counts]
    whole = sum(raw) or 1.0
    return [weight / whole for weight in raw]


def share_met(mask: int, weights: Sequence[float]) -> float:
    """The share of the query that a chunk meets."""
    return sum(weight for number, weight in enumerate(weights) if mask >> number & 1)


def text_scores(matches: Mapping[int, TextMatch], weights: Sequence[float]) -> dict[int, float]:
    """BM25 relative to the best match of the query, times the share of the query met."""
    best = max((match.bm25 for match in matches.values()), default=0.0)
    if best <= 0.0:
        return {key: share_met(match.mask, weights) for key, match in matches.items()}
    return {key: match.bm25 / best * share_met(match.mask, weights) for key, match in matches.items()}


def fuse(
    query: Query,
    rows: Mapping[int, ChunkRow],
    texts: Mapping[int, TextMatch],
    vectors: Mapping[int, VectorMatch],
    weights: Sequence[float],
    *,
    has_vector_leg: bool,
) -> list[Candidate]:
    """Merge the legs by chunk and rank; a leg that has nothing to say does not vote.

    A chunk without a vector is judged by its words alone; when no chunk has any of the words, meaning alone decides.
    """
    scores = text_scores(texts, weights)
    every_term = (1 << len(weights)) - 1
    candidates = []
    for key, row in rows.items():
        text = scores.get(key, 0.0)
        match = texts.get(key)
        vector = vectors.get(key) if has_vector_leg else None
        if vector is None:
            score = text
        elif not texts:
            score = vector.score
        else:
            score = query.vector_weight * vector.score + query.text_weight * text
        candidates.append(
            Candidate(
                row,
                vector.score if vector else 0.0,
                vector.space if vector else "",
                text,
                match.bm25 if match else 0.0,
                match.mask if match else 0,
                1.0,
                score,
                bool(every_term) and match is not None and match.mask == every_term,
            )
        )
    candidates.sort(key=_best_first)
    return candidates


def _best_first(candidate: Candidate) -> tuple[float, str, int]:
    return -candidate.score, candidate.row.path, candidate.row.start_line
