"""Why a search did not return a passage: the values of the answer."""

from typing import Literal, NamedTuple, TypeAlias

from clawmark.model.explanation import CandidateStory, Step

Outcome: TypeAlias = Literal[
    "hit",
    "part-of-hit",
    "below-threshold",
    "after-the-last",
    "not-merged",
    "not-found",
    "filtered-out",
    "not-indexed",
    "no-passage",
]
"""What became of the passage; `not-merged` was found by a leg, but others had more evidence."""

FACTOR_NAMES = {
    "base": "start",
    "text": "words",
    "name": "names and codes",
    "vector": "meaning",
    "line": "best line",
    "user": "the user's own words",
}
"""What people read for the names of factors."""


class LegRank(NamedTuple):
    """The rank of a passage in one leg of the search."""

    rank: int
    """0 if the leg does not find it at all."""
    found: int
    """How many passages the leg finds without a limit."""
    limit: int
    """How many of them become candidates."""

    @property
    def is_taken(self) -> bool:
        """Whether the leg makes it a candidate."""
        return 0 < self.rank <= self.limit


class Remedy(NamedTuple):
    """A change that brings the passage up; it was tried."""

    what: str
    """One sentence."""
    flags: str
    """What to add to `clawmark search`; empty if the query changes instead."""
    query: str
    """The query to ask."""
    removed: tuple[str, ...] = ()
    """The filters to leave out."""


class WhyNot(NamedTuple):
    """What a search did with one passage."""

    query: str
    citation: str
    """The passage that was judged: of a file, the one that came closest."""
    outcome: Outcome
    step: int
    """The step of the pipeline that decided, as `explain` numbers them; 0 before the search."""
    sentence: str
    rank: int = 0
    """Among all judged passages; 0 if it was not judged."""
    score: float = 0.0
    min_score: float = 0.0
    words: LegRank | None = None
    meaning: LegRank | None = None
    story: CandidateStory | None = None
    steps: tuple[Step, ...] = ()
    remedies: tuple[Remedy, ...] = ()
