"""Counts the rows that have a phrase, and keeps the counts of common ones between searches.

Counting a phrase takes 20 ns for each of its rows: nothing for a rare one, 20 ms for one in a
million rows. Rows added since a count are counted and added to it. Rows deleted since are
subtracted only by counting again, when they could change the count by a hundredth."""

from typing import NamedTuple, TypeAlias

from clawmark.model.values import KeywordQuery
from clawmark.store.sqlite.db import Database
from clawmark.store.sqlite.keywords.expressions import match_expression

COMMON = 5000
"""Counts from this on are kept."""
PRECISION = 100
MOST_KEPT = 20_000


class WordsState(NamedTuple):
    """Which full-text table answers, and how far it has been changed."""

    index_id: str
    table: str
    generation: int
    next_key: int
    """All rows have smaller keys."""
    deleted: int
    """How many rows were ever deleted."""


class KeptCount(NamedTuple):
    """A count, and the state of the table when it was made."""

    rows: int
    next_key: int
    deleted: int


CountKey: TypeAlias = tuple[str, str, int, str, bool]
KeptCounts: TypeAlias = dict[CountKey, KeptCount]
"""Shared by the snapshots of a connection."""


class WordCounts:
    """How many rows of one snapshot have a phrase."""

    def __init__(self, db: Database, state: WordsState, kept: KeptCounts) -> None:
        self._db = db
        self._state = state
        self._kept = kept
        self._known: dict[tuple[str, bool], int] = {}

    def rows(self) -> int:
        """Count all rows."""
        state, key = self._state, self._key("", stated_only=False)
        kept = self._kept.get(key)
        if kept is None or (kept.next_key, kept.deleted) != (state.next_key, state.deleted):
            ((count,),) = self._db.rows(f"SELECT count(*) FROM {state.table}_docsize")
            kept = self._kept[key] = KeptCount(count, state.next_key, state.deleted)
        return kept.rows

    def of_query(self, query: KeywordQuery) -> int:
        """Count the rows that match a query."""
        if len(query.terms) == 1 and not query.pairs:
            return self.of_phrase(query.terms[0], stated_only=query.stated_only)
        return self._matching(query)

    def of_phrase(self, phrase: str, *, stated_only: bool) -> int:
        """Count the rows that have a phrase; with `stated_only`, outside of unanswered
        questions."""
        known = self._known.get((phrase, stated_only))
        if known is None:
            known = self._known[phrase, stated_only] = self._count(phrase, stated_only=stated_only)
        return known

    def _count(self, phrase: str, *, stated_only: bool) -> int:
        state, key = self._state, self._key(phrase, stated_only=stated_only)
        query = KeywordQuery((phrase,), stated_only=stated_only)
        kept = self._kept.get(key)
        if kept is None or not _is_precise(kept, state):
            kept = KeptCount(self._matching(query), state.next_key, state.deleted)
        elif kept.next_key < state.next_key:
            rows = kept.rows + self._matching(query, kept.next_key)
            kept = kept._replace(rows=rows, next_key=state.next_key)
        if kept.rows >= COMMON:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[key] = kept
        return kept.rows

    def _matching(self, query: KeywordQuery, first: int = 0) -> int:
        """Count the rows with a key of at least `first` that match."""
        table = self._state.table
        found = self._db.rows(
            f"SELECT count(*) FROM {table} WHERE {table} MATCH ? AND rowid >= ?",
            (match_expression(query), first),
        )
        return int(found[0][0])

    def _key(self, phrase: str, *, stated_only: bool) -> CountKey:
        state = self._state
        return state.index_id, state.table, state.generation, phrase, stated_only


def _is_precise(kept: KeptCount, state: WordsState) -> bool:
    """Return whether rows added since can be added to a count: few were deleted, and the reader is
    not older than the count."""
    deleted = state.deleted - kept.deleted
    return 0 <= deleted * PRECISION <= kept.rows and kept.next_key <= state.next_key
