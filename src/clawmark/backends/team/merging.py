"""Join the answers of the workspace and of the shared spaces into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clawmark.model.values import Degraded, Found, Hit, NothingFound

if TYPE_CHECKING:
    from clawmark.model.explanation import Explanation


def merge(own: Found, shared: Found, most: int) -> Found:
    """Return the best hits of both answers; scores are absolute, so they can be compared.

    A passage that the caller has published is in both, and is shown once, as the caller's own."""
    mine = {(hit.path, hit.snippet) for hit in own.hits}
    others = (hit for hit in shared.hits if (_workspace_path(hit), hit.snippet) not in mine)
    ranked = sorted((*own.hits, *others), key=lambda hit: (-hit.score, bool(hit.space)))
    hits = tuple(ranked[:most])
    return own._replace(
        hits=hits,
        nothing=None if hits else _why_nothing(own.nothing, shared.nothing),
        degraded=_join(own.degraded, shared.degraded),
        milliseconds=max(own.milliseconds, shared.milliseconds),
        explanation=_explained(own.explanation, shared.explanation, hits),
    )


def without_spaces(own: Found, reason: str, fix: str) -> Found:
    """Return the workspace's own answer, which says that the spaces are missing."""
    return own._replace(degraded=_join(own.degraded, Degraded(reason, fix)))


def _workspace_path(hit: Hit) -> str:
    """Return the path of a published file in its author's workspace."""
    return hit.path.split("/", 3)[3] if hit.author and hit.path.count("/") >= 3 else hit.path


def _why_nothing(own: NothingFound | None, shared: NothingFound | None) -> NothingFound | None:
    """Return the reason of the answer that came closer; an empty index says least."""
    if own is None or shared is None:
        return own or shared
    is_shared_better = (shared.best_score or 0.0) > (own.best_score or 0.0)
    return shared if is_shared_better or own.code == "empty-index" else own


def _join(first: Degraded | None, second: Degraded | None) -> Degraded | None:
    if first is None or second is None or first.reason == second.reason:
        return first or second
    return first._replace(
        reason=f"{first.reason} {second.reason}", fix=f"{first.fix} {second.fix}".strip()
    )


def _explained(
    own: Explanation | None, shared: Explanation | None, hits: Sequence[Hit]
) -> Explanation | None:
    """Join the stories of the candidates; their ranks are those among all hits."""
    if own is None or shared is None:
        return own or shared
    ranks = {hit.citation: number for number, hit in enumerate(hits, 1)}
    stories = sorted((*own.candidates, *shared.candidates), key=lambda story: -story.score)
    return own._replace(
        candidates=tuple(
            story._replace(outcome=_outcome(story.outcome, ranks.get(story.citation)))
            for story in stories
        ),
        passages=own.passages + shared.passages,
    )


def _outcome(outcome: str, rank: int | None) -> str:
    if rank is not None:
        return f"hit {rank}"
    return "other hits score higher" if outcome.startswith("hit ") else outcome
