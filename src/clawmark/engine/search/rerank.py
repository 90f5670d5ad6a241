"""Lets a reranker reorder the best candidates; if it fails or is late, the order stays.

The scores keep their positions: the best position keeps the best score. So the threshold means the
same with and without a reranker, on every scale of the reranker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from clawmark.embed.rerank.base import Reranker
from clawmark.engine.search.scoring import Candidate
from clawmark.model.errors import RerankError
from clawmark.model.values import Degraded
from clawmark.text.untrusted.origin_labels import without_comments


class RerankStep(NamedTuple):
    """The reranker, how many candidates it gets, and how long it may take."""

    reranker: Reranker
    top: int
    seconds: float


class Reranked(NamedTuple):
    """The reordered candidates, the summary for `--explain`, and why nothing was reranked, if
    so."""

    candidates: list[Candidate]
    summary: str
    degraded: Degraded | None = None


def rerank(query: str, candidates: Sequence[Candidate], step: RerankStep) -> Reranked:
    """Rerank the first candidates; they are given best first."""
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
    # Sorting is stable: candidates that the reranker scores equally keep their order.
    order = sorted(judged, key=lambda one: -(one.rerank or 0.0))
    placed = [one._replace(score=place.score) for one, place in zip(order, top, strict=True)]
    return Reranked([*placed, *rest], f"the first {len(top)} by {step.reranker.label}")
