"""Lets a reranker put the best candidates in order; when it fails or is late, their order stays.

The first few candidates change places among themselves. The scores stay where they are: the best
place keeps the best score. So the threshold means the same with and without a reranker, on any
scale of its own scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from clawmark.embed.rerank.base import Reranker
from clawmark.engine.search.scoring import Candidate
from clawmark.model.errors import RerankError
from clawmark.model.values import Degraded
from clawmark.text.untrusted.origin_labels import without_comments


class RerankStep(NamedTuple):
    """Who reranks, how many candidates, and how long it may take."""

    reranker: Reranker
    top: int
    seconds: float


class Reranked(NamedTuple):
    """The candidates in their new order, what to show in `--explain`, and why nothing was reranked,
    if so.
    """

    candidates: list[Candidate]
    summary: str
    degraded: Degraded | None = None


def rerank(query: str, candidates: Sequence[Candidate], step: RerankStep) -> Reranked:
    """Rank the first candidates again; they come in best first."""
    top, rest = list(candidates[: step.top]), list(candidates[step.top :])
    if len(top) < 2:
        return Reranked([*top, *rest], "nothing to rerank")
    try:
        scores = step.reranker.rerank(
            query, [without_comments(one.row.text) for one in top], seconds=step.seconds
        )
    except RerankError as error:
        return Reranked(
            [*top, *rest], f"not done: {error.message}", Degraded(error.message, error.hint)
        )
    judged = [one._replace(rerank=score) for one, score in zip(top, scores, strict=True)]
    # Sorting is stable: what the reranker finds equally good stays in the order of the search.
    order = sorted(judged, key=lambda one: -(one.rerank or 0.0))
    placed = [one._replace(score=place.score) for one, place in zip(order, top, strict=True)]
    return Reranked([*placed, *rest], f"the first {len(top)} by {step.reranker.label}")
