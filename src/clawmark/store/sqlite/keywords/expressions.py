"""Writes MATCH expressions of FTS5.

Every term is quoted, so no text of a query can become FTS5 syntax."""

from collections.abc import Mapping, Sequence

from clawmark.model.values import KeywordQuery
from clawmark.store.thresholds import ALMOST_NOTHING


def match_expression(query: KeywordQuery) -> str:
    """Return the FTS5 expression of a query; empty if the query is."""
    return match_any([query])


def match_any(queries: Sequence[KeywordQuery]) -> str:
    """Return the expression for rows that match one of several queries, all of them `stated_only`
    or none."""
    parts: list[str] = []
    for query in queries:
        parts += map(_quoted, query.terms)
        parts += [
            f"NEAR({_quoted(one)} {_quoted(other)}, {query.distance})" for one, other in query.pairs
        ]
    return _in_columns(_any(parts), stated_only=queries[0].stated_only) if parts else ""


def phrases_of(query: KeywordQuery) -> list[str]:
    """Return the phrases of a query in the order of `match_expression`."""
    return [*query.terms, *(term for pair in query.pairs for term in pair)]


def threshold_expression(
    query: KeywordQuery, worth: Mapping[str, float], least: float
) -> tuple[str, int]:
    """Return an expression for the rows whose terms are together worth `least` or more.

    `worth` holds the terms to look for, the most valuable first. The expression ends with all terms
    of the query, so that their occurrences in a row can be counted; also return how many phrases
    come before those."""
    terms = list(worth)
    left_from = [sum(worth[term] for term in terms[at:]) for at in range(len(terms) + 1)]
    phrases = 0

    def rows_with(start: int, need: float) -> str:
        nonlocal phrases
        parts = []
        for at in range(start, len(terms)):
            if left_from[at] < need:
                break
            phrases += 1
            more = need - worth[terms[at]]
            term = _quoted(terms[at])
            is_met = more <= 0.0
            parts.append(term if is_met else f"({term} AND {rows_with(at + 1, more)})")
        return _any(parts)

    required = rows_with(0, min(least, left_from[0]) - ALMOST_NOTHING)
    everything = _any(list(map(_quoted, query.terms)))
    expression = f"{required} AND {everything}"
    return _in_columns(expression, stated_only=query.stated_only), phrases


def _any(parts: Sequence[str]) -> str:
    return f"({' OR '.join(parts)})"


def _in_columns(expression: str, *, stated_only: bool) -> str:
    return f"{{text context}} : ({expression})" if stated_only else expression


def _quoted(term: str) -> str:
    return '"' + term.replace('"', " ") + '"'
