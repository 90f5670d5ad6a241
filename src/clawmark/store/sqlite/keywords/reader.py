"""Searches one full-text table by keywords.

If the terms have few rows, FTS5 ranks all of them. Otherwise rows with the most valuable
combinations of terms are ranked first, and others only as long as they could be among the best: a
row whose terms are rarely found elsewhere is worth more than one that repeats common words. The
threshold of WAND, written as an FTS5 expression, chooses the rows, so that FTS5 skips most of the
rows of a common term."""

from collections.abc import Mapping, Sequence
from typing import Any

from clawmark.model.values import KeywordQuery
from clawmark.store.sqlite.db import Database, as_list
from clawmark.store.sqlite.keywords.bm25 import BUILT_IN, FUNCTION, keyword_score, rarity, weights
from clawmark.store.sqlite.keywords.counts import KeptCounts, WordCounts, WordsState
from clawmark.store.sqlite.keywords.expressions import (
    match_expression,
    phrases_of,
    threshold_expression,
)

FEW_ROWS = 10_000
"""If the terms have no more rows than this together, all of them are ranked (3 ms)."""
MOST_RESULTS = 200
"""Searches for more than this rank all rows."""
MOST_TERMS = 8
"""How many terms, the rarest ones, decide which rows are ranked; the others count as well."""
FIRST_ROWS, ENOUGH_ROWS, MOST_ROWS = 200, 800, 8000
"""How many rows the first expression should find, how many are enough to stop, and how many one
expression may find (2 µs each). Where more rows than that have every term, those that were indexed
last are ranked."""
MORE_ROWS, LOWER = 4, 0.95
"""By how much the number of rows should grow from one expression to the next, and by how much the
threshold falls at least."""
LIKELY_TF = 1.7
"""What BM25 hardly ever exceeds for a term, in units of its rarity; it never exceeds 2.2."""
ROWS_PER_LOOKUP = 200
"""FTS5 reads this many rows of a phrase in the time it takes to look up one row."""


class KeywordReader:
    """The keyword side of one snapshot."""

    def __init__(self, db: Database, state: WordsState, kept: KeptCounts) -> None:
        self._db = db
        self._table = state.table
        self.counts = WordCounts(db, state, kept)
        self.ranked = 0
        """How many rows were ranked one by one, for tests of how work grows."""

    def search(
        self,
        query: KeywordQuery,
        limit: int,
        only: str = "",
        bindings: Sequence[Any] = (),
        share: float = 1.0,
    ) -> list[tuple[int, float]]:
        """Return (key, score) of the best matches.

        `only` is an SQL condition on `rowid`, which about this share of the rows meets."""
        if not match_expression(query) or limit < 1:
            return []
        counts = {} if query.pairs or limit > MOST_RESULTS else self._counts(query)
        if sum(counts.values()) <= FEW_ROWS:
            return self._rank_all(query, limit, only, bindings)
        found = self._rank_likely(query, limit, counts, (only, bindings, share))
        return found if len(found) == limit else self._rank_all(query, limit, only, bindings)

    def score(self, query: KeywordQuery, keys: Sequence[int]) -> dict[int, float]:
        """Return the scores of those of the given chunks that match."""
        phrases = phrases_of(query)
        if not phrases or not keys:
            return {}
        counts = [
            self.counts.of_phrase(phrase, stated_only=query.stated_only) for phrase in phrases
        ]
        if sum(counts) > ROWS_PER_LOOKUP * len(phrases) * len(keys):
            return self._score_each(query, counts, keys)
        # The plus keeps SQLite from looking up each key, which is slower than one pass here.
        table = self._table
        found = self._db.rows(
            f"SELECT rowid, {BUILT_IN.format(table)} FROM {table} WHERE {table} MATCH ? "
            "AND rowid BETWEEN ? AND ? AND +rowid IN (SELECT value FROM json_each(?))",
            (match_expression(query), min(keys), max(keys), as_list(keys)),
        )
        return dict(found)

    def _score_each(
        self, query: KeywordQuery, counts: Sequence[int], keys: Sequence[int]
    ) -> dict[int, float]:
        total, table = self.counts.rows(), self._table
        given = weights(0, [rarity(count, total) for count in counts])
        self._db.add_fts5_function(FUNCTION, keyword_score)
        found = self._db.rows(
            f"SELECT rowid, {FUNCTION}({table}, ?) FROM {table} WHERE {table} MATCH ? "
            "AND rowid IN (SELECT value FROM json_each(?))",
            (given, match_expression(query), as_list(keys)),
        )
        self.ranked += len(found)
        return dict(found)

    def _counts(self, query: KeywordQuery) -> dict[str, int]:
        counts = {
            term: self.counts.of_phrase(term, stated_only=query.stated_only) for term in query.terms
        }
        return {term: count for term, count in counts.items() if count}

    def _rank_all(
        self, query: KeywordQuery, limit: int, only: str, bindings: Sequence[Any]
    ) -> list[tuple[int, float]]:
        return self._db.rows(
            f"SELECT rowid, {BUILT_IN.format(self._table)} AS score FROM {self._table} "
            f"WHERE {self._table} MATCH ? {only} ORDER BY score DESC, rowid LIMIT ?",
            (match_expression(query), *bindings, limit),
        )

    def _rank_likely(
        self,
        query: KeywordQuery,
        limit: int,
        counts: Mapping[str, int],
        filtered: tuple[str, Sequence[Any], float],
    ) -> list[tuple[int, float]]:
        """Rank the rows with the most valuable combinations of terms."""
        only, bindings, share = filtered
        total = self.counts.rows()
        rarities = {
            term: rarity(counts[term], total) for term in sorted(counts, key=counts.__getitem__)
        }
        worth = dict(list(rarities.items())[:MOST_TERMS])
        others = sum(rarities.values()) - sum(worth.values())
        combinations = _combinations(worth, counts, total)
        least, whole = min(worth.values()), combinations[0][0]
        wanted = FIRST_ROWS / max(share, 1.0 / total)
        need = max(least, _threshold(combinations, wanted))
        found: dict[int, float] = {}
        while True:
            expression, first = threshold_expression(query, worth, need)
            given = weights(first, [rarities.get(term, 0.0) for term in query.terms])
            order = "DESC" if need >= whole else "ASC"
            rows = self._rank_matching(expression, given, (only, bindings), order)
            is_first, is_cut = not found, len(rows) == MOST_ROWS
            found.update(rows)
            best = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:limit]
            enough = best[-1][1] / LIKELY_TF - others if len(best) == limit else 0.0
            if is_cut and is_first and need < whole:
                need = whole
            elif len(rows) >= ENOUGH_ROWS or need <= max(least, enough):
                return best
            else:
                wanted *= MORE_ROWS
                lower = min(LOWER * need, _threshold(combinations, wanted))
                need = max(least, enough, lower)

    def _rank_matching(
        self, expression: str, given: str, filtered: tuple[str, Sequence[Any]], order: str
    ) -> list[tuple[int, float]]:
        only, bindings = filtered
        self._db.add_fts5_function(FUNCTION, keyword_score)
        found = self._db.rows(
            f"SELECT rowid, {FUNCTION}({self._table}, ?) FROM {self._table} "
            f"WHERE {self._table} MATCH ? {only} ORDER BY rowid {order} LIMIT ?",
            (given, expression, *bindings, MOST_ROWS),
        )
        self.ranked += len(found)
        return found


def _combinations(
    worth: Mapping[str, float], counts: Mapping[str, int], total: int
) -> list[tuple[float, float]]:
    """Return what each combination of terms is worth, most first, and how many rows would have
    exactly these terms if terms were independent."""
    combinations = [(0.0, float(total))]
    for term, value in worth.items():
        share = counts[term] / total
        combinations = [
            either
            for sum_, rows in combinations
            for either in ((sum_, rows * (1.0 - share)), (sum_ + value, rows * share))
        ]
    return sorted(combinations, reverse=True)


def _threshold(combinations: Sequence[tuple[float, float]], wanted: float) -> float:
    """Return the threshold above which about `wanted` rows are."""
    rows = 0.0
    for value, expected in combinations:
        rows += expected
        if rows >= wanted:
            return value
    return 0.0
