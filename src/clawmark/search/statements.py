"""Looks into the best candidates: which line of each says most about the query, and whether it is said or only asked.

Takes candidates ranked by what their passages as a whole are worth; gives them ranked again. A question that got no answer
is no evidence for itself, so what a passage only asks is taken out of its evidence. The best line that states something,
and the best statement of the user, count on their own: a short remark is otherwise lost among long lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clawmark.search.scoring import Candidate, confidence, ranked
from clawmark.search.snippet import Spotter, pieces_of
from clawmark.text.conversation import Stated, is_question, stated, without_note_header
from clawmark.types import Query

Nearness = Callable[[Sequence[str]], Sequence[float]]
"""How near texts are to the query in meaning, as vector evidence."""

DEEP = 32
"""So many candidates are read, not counting those that turn out to be questions."""
LINES_DEEP = 16
"""Of so many candidates every line is judged; of the others what the user states."""
MOST_LINES = 12
SHORTEST_LINE = 12
MOST_READ = 100


def weigh_statements(
    query: Query, candidates: Sequence[Candidate], spotter: Spotter, nearness: Nearness | None
) -> list[Candidate]:
    """The candidates with the evidence of their statements, best first."""
    weighed: list[Candidate] = []
    read = 0
    for number, candidate in enumerate(candidates):
        if read == max(DEEP, 2 * query.max_results) or number == MOST_READ:
            return ranked([*weighed, *candidates[number:]])
        said = stated(candidate.row.text)
        candidate = _only_stated(candidate, said, spotter)
        if nearness is not None and said.text:
            line = _best(nearness, _lines(said.text, spotter)) if read < LINES_DEEP else 0.0
            candidate = candidate._replace(line=line, user=_best(nearness, said.by_user))
        read += said.share > 0.5
        weighed.append(candidate._replace(score=confidence(candidate, query)))
    return ranked(weighed)


def _only_stated(candidate: Candidate, said: Stated, spotter: Spotter) -> Candidate:
    """A candidate without the evidence of questions that got no answer."""
    if said.share == 1.0:
        return candidate
    whole = spotter.weight(candidate.row.text)
    kept = spotter.weight(said.text) / whole if whole else 1.0
    share = min(1.0, 2.0 * said.share)
    return candidate._replace(
        text=candidate.text * min(1.0, kept) * share,
        name=candidate.name * min(1.0, kept) * share,
        vector=candidate.vector * share,
        stated=share,
        is_exact=candidate.is_exact and kept >= 1.0,
    )


def _lines(text: str, spotter: Spotter) -> list[str]:
    """The lines of a passage that state something; of very many those with the query's words, and the first ones."""
    lines = [line for line in pieces_of(without_note_header(text)) if len(line) > SHORTEST_LINE and not is_question(line)]
    if len(lines) > MOST_LINES:
        lines = sorted(lines, key=spotter.weight, reverse=True)[:MOST_LINES]
    return lines


def _best(nearness: Nearness, lines: Sequence[str]) -> float:
    return max(nearness(lines), default=0.0) if lines else 0.0
