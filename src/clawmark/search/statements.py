"""Looks into the best candidates: which line of each says most about the query, and whether it is said or only asked.

Takes candidates ranked by what their passages as a whole are worth; gives them ranked again. A question that got no answer
is not evidence for itself, so the vector of a passage counts as far as the passage states something. The best line that
states something, and the best statement of the user, count on their own: a short remark is otherwise lost among long lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clawmark.search.scoring import BIAS, Candidate, confidence, ranked
from clawmark.search.snippet import Spotter, pieces_of
from clawmark.text.conversation import stated, without_note_header
from clawmark.types import Query

Nearness = Callable[[Sequence[str]], Sequence[float]]
"""How near texts are to the query in meaning, as vector evidence."""

DEEP = 40
"""So many candidates are read, not counting those that turn out to be questions."""
LINES_DEEP = 1.5
"""Of so many candidates for each result every line is judged; of the others what the user states."""
MOST_LINES = 5
SHORTEST_LINE = 12
MOST_READ = 100


def weigh_statements(
    query: Query, candidates: Sequence[Candidate], spotter: Spotter, nearness: Nearness | None, bias: float = BIAS
) -> list[Candidate]:
    """The candidates with the evidence of their statements, best first."""
    weighed: list[Candidate] = []
    read = 0
    for number, candidate in enumerate(candidates):
        if read == max(DEEP, 2 * query.max_results) or number == MOST_READ:
            return ranked([*weighed, *candidates[number:]])
        text = candidate.row.text
        body = without_note_header(text)
        said = stated(body)
        share = said.share * len(body) / len(text) if text else 1.0
        if share < 1.0:
            # The words of questions and of the head of a session note are not in its text evidence; its vector has been
            # made of all of it.
            share = min(1.0, 2.0 * share)
            states_terms = spotter.weight(said.text) >= spotter.weight(text)
            candidate = candidate._replace(
                vector=candidate.vector * share, stated=share, is_exact=candidate.is_exact and states_terms
            )
        judges_lines = read < LINES_DEEP * query.max_results
        if nearness is not None and said.text and (judges_lines or said.by_user):
            line = _best(nearness, _lines(said.text, spotter)) if judges_lines else 0.0
            candidate = candidate._replace(line=line, user=_best(nearness, said.by_user))
        read += said.share > 0.5
        if candidate is not candidates[number]:
            # What a small memory or an index without vectors adds is due to what is stated, too.
            begin = BIAS + candidate.stated * (bias - BIAS)
            candidate = candidate._replace(score=confidence(candidate, query, begin))
        weighed.append(candidate)
    return ranked(weighed)


def _lines(text: str, spotter: Spotter) -> list[str]:
    """The lines of a passage that state something; of very many those with the query's words, and the first ones."""
    pieces = pieces_of(text)
    lines = [line for line in pieces if len(line) > SHORTEST_LINE and not line.rstrip().endswith("?")]
    if len(lines) > MOST_LINES:
        lines = sorted(lines, key=spotter.count, reverse=True)[:MOST_LINES]
    return lines


def _best(nearness: Nearness, lines: Sequence[str]) -> float:
    return max(nearness(lines), default=0.0) if lines else 0.0
