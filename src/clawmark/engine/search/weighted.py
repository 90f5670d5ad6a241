"""The published score, `vectorWeight * vector + textWeight * text`.

`query.hybrid.fusion: "weighted"` selects it. Text is BM25 relative to the best match of the query,
times the share of the query that is met; vector is the cosine between the model's own floor and
ceiling. Both depend on the other candidates or on constants of the model, so it is not the default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clawmark.engine.search.scoring import Candidate, TextMatch, VectorMatch, ranked
from clawmark.model.values import ChunkRow, Query

CURVE = 0.7
"""Answers lie in the upper half of a model's range; the curve spreads them above the threshold."""


def calibrate(cosine: float, floor: float, ceiling: float) -> float:
    """Scale a cosine from 0 (the model's floor) to 1 (its ceiling)."""
    return float(min(1.0, max(0.0, (cosine - floor) / (ceiling - floor))) ** CURVE)


def term_weights(counts: Sequence[int]) -> list[float]:
    """Weight each term by how few of the candidates meet it; the weights sum to 1."""
    raw = [(count + 1) ** -0.5 for count in counts]
    whole = sum(raw) or 1.0
    return [weight / whole for weight in raw]


def share_met(mask: int, weights: Sequence[float]) -> float:
    """Return the share of the query that a passage meets."""
    return sum(weight for number, weight in enumerate(weights) if mask >> number & 1)


def merge_weighted(
    query: Query,
    rows: Mapping[int, ChunkRow],
    texts: Mapping[int, TextMatch],
    vectors: Mapping[int, VectorMatch],
    terms: int,
) -> list[Candidate]:
    """Merge the candidates of both legs by the weighted sum of their scores, best first.

    A passage without a vector is judged by its words alone; if no passage has any of the words, the
    vector decides."""
    counts = [sum(match.mask >> number & 1 for match in texts.values()) for number in range(terms)]
    weights = term_weights(counts)
    best = max((match.bm25 for match in texts.values()), default=0.0) or 1.0
    every_term = (1 << terms) - 1
    candidates = []
    for key, row in rows.items():
        match, vector = texts.get(key), vectors.get(key)
        text = match.bm25 / best * share_met(match.mask, weights) if match else 0.0
        if vector is None:
            score = text
        elif not texts:
            score = vector.score
        else:
            score = query.vector_weight * vector.score + query.text_weight * text
        candidates.append(
            Candidate(
                row=row,
                text=text,
                name=0.0,
                vector=vector.score if vector else 0.0,
                space=vector.space if vector else "",
                bm25=match.bm25 if match else 0.0,
                mask=match.mask if match else 0,
                meaning=1.0,
                score=score,
                is_exact=bool(every_term) and match is not None and match.mask == every_term,
            )
        )
    return ranked(candidates)
