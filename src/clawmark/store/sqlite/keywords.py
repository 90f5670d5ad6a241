"""Keyword search in FTS5: builds the MATCH expression of a `KeywordQuery` and runs it.

Every term is quoted, so no text of a query can become FTS5 syntax."""

from collections.abc import Sequence

from clawmark.model.values import KeywordQuery
from clawmark.store.sqlite.db import Database, as_list

CONTEXT_WEIGHT, ASKED_WEIGHT = 1.0, 0.3
"""The weight of a match in a chunk's headings or date, and in an unanswered question, relative to
one in its text."""
_SCORE = f"-bm25({{0}}, 1.0, {CONTEXT_WEIGHT}, {ASKED_WEIGHT})"


def match_expression(query: KeywordQuery) -> str:
    """Return the FTS5 expression of a query; empty if the query is."""
    parts = list(map(_quoted, query.terms))
    parts += [
        f"NEAR({_quoted(one)} {_quoted(other)}, {query.distance})" for one, other in query.pairs
    ]
    any_part = " OR ".join(parts)
    return f"{{text context}} : ({any_part})" if any_part and query.stated_only else any_part


def search(
    db: Database, table: str, query: KeywordQuery, limit: int, only: str, bindings: Sequence[object]
) -> list[tuple[int, float]]:
    """Return (key, score) of the best matches; `only` is an SQL condition on `rowid`."""
    expression = match_expression(query)
    if not expression:
        return []
    return db.rows(
        f"SELECT rowid, {_SCORE.format(table)} AS score FROM {table} "
        f"WHERE {table} MATCH ? {only} ORDER BY score DESC, rowid LIMIT ?",
        (expression, *bindings, limit),
    )


def score(db: Database, table: str, query: KeywordQuery, keys: Sequence[int]) -> dict[int, float]:
    """Return the scores of those of the given chunks that match."""
    expression = match_expression(query)
    if not expression or not keys:
        return {}
    # The plus keeps SQLite from starting FTS5 again for every key, which is ten times slower than
    # one pass.
    found = db.rows(
        f"SELECT rowid, {_SCORE.format(table)} FROM {table} WHERE {table} MATCH ? "
        "AND rowid BETWEEN ? AND ? AND +rowid IN (SELECT value FROM json_each(?))",
        (expression, min(keys), max(keys), as_list(keys)),
    )
    return dict(found)


def count(db: Database, table: str, query: KeywordQuery) -> int:
    """Count the rows that match."""
    found = db.rows(
        f"SELECT count(*) FROM {table} WHERE {table} MATCH ?", (match_expression(query),)
    )
    return int(found[0][0])


def _quoted(term: str) -> str:
    return '"' + term.replace('"', " ") + '"'
