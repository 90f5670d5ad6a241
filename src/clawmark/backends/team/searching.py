"""Search several spaces at one moment: the pipeline runs in each, and the hits are merged.

Scores are absolute, so hits of different spaces can be compared. The words of a space are rare or
common by its own passages only."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence

from clawmark.embed.base import Embedder
from clawmark.engine.search.legs import Asked, ask
from clawmark.model.errors import EmbeddingError
from clawmark.model.explanation import Explanation
from clawmark.model.values import Found, Hit, Identity, NothingFound, Query, Space, Vector
from clawmark.text.space_paths import parse_space_path

_ORDER = (
    "below-threshold", "still-indexing", "filtered-out", "no-such-words", "empty-query",
    "empty-index",
)  # fmt: skip
"""Of several spaces without a hit, the first of these reasons is given."""
NO_SPACES = NothingFound(
    "not-allowed", "There is no shared space that you may read.", best_score=None
)
EMPTY = NothingFound(
    "empty-index",
    "There is nothing in the shared spaces yet: append an entry or publish a file first.",
    best_score=None,
)
_HIT = re.compile(r"hit [0-9]+")


class QueryVectors:
    """The vectors of one query: each embedder is asked once for all spaces."""

    def __init__(self, text: str, embedders: Sequence[Embedder]) -> None:
        self._text = text
        self._embedders = [_AskedOnce(embedder) for embedder in embedders]
        self.is_slow = any(embedder.traits.remote for embedder in embedders)

    def of_space(self, spaces: Sequence[Space]) -> Asked:
        """Return the vectors of the query that can be compared with those of a space."""
        began = time.perf_counter()
        if not self._text:
            return ask(self._text, (), ())
        asked = ask(self._text, self._embedders, spaces)
        return asked._replace(milliseconds=(time.perf_counter() - began) * 1000)


class _AskedOnce:
    """An embedder that embeds the query once, and repeats the vector or the error."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vector: Vector | None = None
        self._error: EmbeddingError | None = None
        self.traits = embedder.traits
        self.covers = embedder.covers
        self.embed_texts = embedder.embed_texts

    @property
    def identity(self) -> Identity:
        return self._embedder.identity

    def embed_query(self, text: str) -> Vector:
        if self._error is not None:
            raise self._error
        if self._vector is None:
            try:
                self._vector = self._embedder.embed_query(text)
            except EmbeddingError as error:
                self._error = error
                raise
        return self._vector


def merge(query: Query, answers: Mapping[str, Found]) -> Found:
    """Return the best hits of all spaces, each with its space and author."""
    found = list(answers.values())
    hits = [_labelled(hit, space) for space, one in answers.items() for hit in one.hits]
    hits.sort(key=lambda hit: (-hit.score, hit.space, hit.path, hit.start_line))
    best = tuple(hits[: query.max_results])
    # The answer is described by the space of its best hit, otherwise by the first one.
    first = answers[best[0].space] if best else found[0]
    nothing = None
    if not best:
        reasons = [one.nothing for one in found if one.nothing is not None]
        nothing = min(reasons, key=_importance)
        nothing = EMPTY if nothing.code == EMPTY.code else nothing
    return first._replace(
        hits=best,
        nothing=nothing,
        degraded=next((one.degraded for one in found if one.degraded is not None), None),
        milliseconds=sum(one.milliseconds for one in found),
        explanation=_explained(answers, best),
        due_vectors=sum(one.due_vectors for one in found),
    )


def _labelled(hit: Hit, space: str) -> Hit:
    parts = parse_space_path(hit.path)
    is_log = parts is not None and parts.is_log  # then the author is known, if there is only one
    author = hit.author if is_log or parts is None else parts.author
    return hit._replace(space=space, author=author)


def _importance(nothing: NothingFound) -> tuple[int, float]:
    order = _ORDER.index(nothing.code) if nothing.code in _ORDER else len(_ORDER)
    return order, -(nothing.best_score or 0.0)


def _explained(answers: Mapping[str, Found], hits: Sequence[Hit]) -> Explanation | None:
    """Join the explanations of all spaces; the numbers of hits are those of the whole answer."""
    stories = {space: one.explanation for space, one in answers.items()}
    known = {space: story for space, story in stories.items() if story is not None}
    if len(known) < 2:
        return next(iter(known.values()), None)
    places = {hit.citation: f"hit {number}" for number, hit in enumerate(hits, 1)}
    return Explanation(
        steps=tuple(
            step._replace(summary=f"{space}: {step.summary}")
            for space, story in known.items()
            for step in story.steps
        ),
        candidates=tuple(
            one._replace(outcome=places.get(one.citation, "better ones in other spaces"))
            if _HIT.fullmatch(one.outcome)
            else one
            for story in known.values()
            for one in story.candidates
        ),
        passages=sum(story.passages for story in known.values()),
    )
