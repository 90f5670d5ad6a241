"""Searches one full-text table by keywords.

If the terms have few rows, FTS5 ranks all of them. Otherwise rows with the most valuable
combinations of terms are ranked first, and others only as long as they could be among the best: a
row whose terms are rarely found elsewhere is worth more than one that repeats common words. The
threshold of WAND, written as an FTS5 expression, chooses the rows, so that FTS5 skips most of the
rows of a common term."""

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from clawmark.model.values import KeywordQuery
from clawmark.store.sqlite.db import Database, as_list
from clawmark.store.sqlite.keywords.bm25 import (
    BUILT_IN,
    keyword_score,
    phrase_scores,
    rarity,
    weights,
)
from clawmark.store.sqlite.keywords.counts import KeptCounts, WordCounts, WordsState
from clawmark.store.sqlite.keywords.expressions import (
    match_any,
    match_expression,
    phrases_of,
    threshold_expression,
)
from clawmark.store.thresholds import (
    MORE_ROWS,
    combinations,
    first_threshold,
    threshold,
)

MOST_RESULTS = 200
"""Searches for more than this rank all rows."""
MOST_TERMS = 8
"""How many terms, the rarest ones, decide which rows are ranked; the others count as well."""
FURTHER = 6
"""In an index of moderate size, this many times as many rows are enough."""
ROWS_PER_STEP = 20
"""Finding the other term of a pair takes as long as reading this many rows."""
LOWER = 0.95
"""The threshold falls at least to this share from one expression to the next."""


class Limits(NamedTuple):
    """How much work a search does. The defaults were chosen with `bench/keywords.py`."""

    few_rows: int = 20_000
    """If the terms have no more rows than this together, all of them are ranked (6 ms)."""
    first_rows: int = 200
    """How many rows the first expression should find."""
    enough_rows: int = 800
    """After an expression that finds this many, no other one follows."""
    many_rows: int = 200_000
    """If the terms have fewer rows than this together, a search looks `FURTHER`, and ranks all of
    them if it finds too many with every term."""
    most_rows: int = 8000
    """How many rows of one expression are ranked (2 µs each). If the terms are so common that more
    rows have all of them, those indexed last are ranked."""
    likely_tf: float = 1.7
    """What BM25 hardly ever exceeds for a term, in units of its rarity; it never exceeds 2.2."""
    rows_per_lookup: int = 500
    """FTS5 reads this many rows of a phrase in the time it takes to look up one row."""


_LIMITS = Limits()


class KeywordReader:
    """The keyword side of one snapshot."""

    def __init__(
        self, db: Database, state: WordsState, kept: KeptCounts, limits: Limits = _LIMITS
    ) -> None:
        self._db = db
        self._table = state.table
        self._limits = limits
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
        if sum(counts.values()) <= self._limits.few_rows:
            return self._rank_all(query, limit, only, bindings)
        found = self._rank_likely(query, limit, counts, (only, bindings, share))
        return found if len(found) == limit else self._rank_all(query, limit, only, bindings)

    def score(self, queries: Sequence[KeywordQuery], keys: Sequence[int]) -> list[dict[int, float]]:
        """Return, for each query, the scores of those of the given chunks that match."""
        looked_up: dict[bool, list[int]] = {}
        scores: list[dict[int, float]] = [{} for _ in queries]
        for number, query in enumerate(queries):
            if not keys or not match_expression(query):
                continue
            if self._is_slow_to_read(query, len(keys)):
                looked_up.setdefault(query.stated_only, []).append(number)
            else:
                scores[number] = self._score_in_one_pass(query, keys)
        for numbers in looked_up.values():
            found = self._look_up([queries[number] for number in numbers], keys)
            for number, some in zip(numbers, found, strict=True):
                scores[number] = some
        return scores

    def _is_slow_to_read(self, query: KeywordQuery, keys: int) -> bool:
        """Return whether looking up some rows is faster than reading all that match."""
        counts = self._phrase_counts(query)
        terms = len(query.terms)
        pairs = zip(counts[terms::2], counts[terms + 1 :: 2], strict=True)
        rows = sum(counts[:terms]) + sum(ROWS_PER_STEP * min(pair) for pair in pairs)
        return rows > self._limits.rows_per_lookup * len(counts) * keys

    def _score_in_one_pass(self, query: KeywordQuery, keys: Sequence[int]) -> dict[int, float]:
        table, counts = self._table, self._phrase_counts(query)
        function = BUILT_IN.format(table)
        given: tuple[str, ...] = ()
        if sum(counts) > self._limits.few_rows:
            self._db.add_fts5_function(keyword_score)
            function = f"keyword_score({table}, ?)"
            given = (weights(0, self._rarities(counts)),)
        # The plus keeps SQLite from looking up each key.
        found = self._db.rows(
            f"SELECT rowid, {function} FROM {table} WHERE {table} MATCH ? "
            "AND rowid BETWEEN ? AND ? AND +rowid IN (SELECT value FROM json_each(?))",
            (*given, match_expression(query), min(keys), max(keys), as_list(keys)),
        )
        return dict(found)

    def _look_up(
        self, queries: Sequence[KeywordQuery], keys: Sequence[int]
    ) -> list[dict[int, float]]:
        """Score single rows by several queries at once, all of them `stated_only` or none."""
        table, counts = self._table, list(map(self._phrase_counts, queries))
        rarities = self._rarities([count for some in counts for count in some])
        self._db.add_fts5_function(phrase_scores)
        found = self._db.rows(
            f"SELECT rowid, phrase_scores({table}, ?) FROM {table} WHERE {table} MATCH ? "
            "AND rowid IN (SELECT value FROM json_each(?))",
            (weights(0, rarities), match_any(queries), as_list(keys)),
        )
        self.ranked += len(found)
        scores: list[dict[int, float]] = [{} for _ in queries]
        for key, text in found:
            by_phrase = iter(json.loads(text))
            for some, by_key in zip(counts, scores, strict=True):
                score = sum(islice(by_phrase, len(some)))
                if score:
                    by_key[key] = score
        return scores

    def _phrase_counts(self, query: KeywordQuery) -> list[int]:
        return [
            self.counts.of_phrase(phrase, stated_only=query.stated_only)
            for phrase in phrases_of(query)
        ]

    def _rarities(self, counts: Sequence[int]) -> list[float]:
        total = self.counts.rows()
        return [rarity(count, total) for count in counts]

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
        """Rank the rows with the most valuable combinations of terms; return nothing if ranking all
        is better."""
        only, bindings, share = filtered
        total = self.counts.rows()
        rarities = {
            term: rarity(counts[term], total) for term in sorted(counts, key=counts.__getitem__)
        }
        worth = dict(list(rarities.items())[:MOST_TERMS])
        others = sum(rarities.values()) - sum(worth.values())
        expected = combinations(worth, counts, total)
        least, whole = min(worth.values()), expected[0][0]
        wanted = self._limits.first_rows / max(share, 1.0 / total)
        need = max(least, first_threshold(expected, wanted, limit))
        order = "DESC" if expected[0][1] > self._limits.most_rows else "ASC"
        is_few = sum(counts.values()) <= self._limits.many_rows
        enough_rows = self._limits.enough_rows * (FURTHER if is_few and need >= whole else 1)
        found: dict[int, float] = {}
        while True:
            expression, first = threshold_expression(query, worth, need)
            given = weights(first, [rarities.get(term, 0.0) for term in query.terms])
            rows = self._rank_matching(expression, given, (only, bindings), order)
            is_first, is_cut = not found, len(rows) == self._limits.most_rows
            if is_cut and is_few:
                return []
            found.update(rows)
            best = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:limit]
            enough = best[-1][1] / self._limits.likely_tf - others if len(best) == limit else 0.0
            if is_cut and is_first and need < whole:
                need = whole
            elif len(rows) >= enough_rows or need <= max(least, enough):
                return best
            else:
                wanted *= MORE_ROWS
                lower = min(LOWER * need, threshold(expected, wanted))
                need = max(least, enough, lower)

    def _rank_matching(
        self, expression: str, given: str, filtered: tuple[str, Sequence[Any]], order: str
    ) -> list[tuple[int, float]]:
        only, bindings = filtered
        self._db.add_fts5_function(keyword_score)
        found = self._db.rows(
            f"SELECT rowid, keyword_score({self._table}, ?) FROM {self._table} "
            f"WHERE {self._table} MATCH ? {only} ORDER BY rowid {order} LIMIT ?",
            (given, expression, *bindings, self._limits.most_rows),
        )
        self.ranked += len(found)
        return found
