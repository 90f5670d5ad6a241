"""How a search arrived at its answer: the values of `--explain`."""

from typing import NamedTuple


class Step(NamedTuple):
    """What one step of the search pipeline did, for `--explain`."""

    number: int
    name: str
    summary: str
    milliseconds: float
    passages: int | None = None
    """How many passages there are after the step; None if it does not choose among them."""


class Factor(NamedTuple):
    """What one kind of evidence adds to the score of a candidate."""

    name: str
    """`base`, `text`, `name`, `vector`, `line` or `user`."""
    value: float
    weight: float
    points: float
    """`value * weight`; the points of all factors add up."""


class CandidateStory(NamedTuple):
    """What happened to one candidate; `outcome` is "hit 3" or the reason it was dropped."""

    citation: str
    vector: float
    vector_space: str
    text: float
    name: float
    line: float
    user: float
    stated: float
    bm25: float
    terms: str
    """The query terms it contains, such as `3/5 billing, database, choose`."""
    decay: float
    score: float
    outcome: str
    when: float = 0.0
    """How well its days match a time named in the query, 0 to 1."""
    rerank: float | None = None
    """The reranker's score, 0 to 1; None when it was not reranked."""
    factors: tuple[Factor, ...] = ()
    """What its evidence adds up from; `engine.search.explain.score_of` makes the score of it."""


class Explanation(NamedTuple):
    """How the pipeline arrived at an answer."""

    steps: tuple[Step, ...]
    candidates: tuple[CandidateStory, ...]
    passages: int = 0
    """The number of passages searched."""
