"""Counts of chunks, tokens and terms that a transaction changes, written together at its end.

A transaction stores many files with mostly the same words. Written once for all of them, a count is
updated once. A read of the counts within the transaction writes them first."""

from __future__ import annotations

from collections.abc import Sequence

from clawmark.store.postgres import statements
from clawmark.store.postgres.servers import Connection
from clawmark.store.postgres.tokens import PackedWords


class PendingCounts:
    """What stored chunks add to the counts of their editions, until it is written."""

    def __init__(self, connection: Connection, scope: int) -> None:
        self._connection = connection
        self._scope = scope
        self._totals: dict[int, list[int]] = {}
        self._terms: dict[int, dict[int, list[int]]] = {}

    def add(self, edition: int, packed: Sequence[PackedWords]) -> None:
        """Count chunks that were stored in an edition."""
        totals = self._totals.setdefault(edition, [0, 0])
        terms = self._terms.setdefault(edition, {})
        for words in packed:
            totals[0] += 1
            totals[1] += words.length
            for term, stated in zip(words.terms, words.stated, strict=True):
                counts = terms.get(term)
                if counts is None:
                    terms[term] = [1, int(stated > 0)]
                else:
                    counts[0] += 1
                    counts[1] += stated > 0

    def write(self) -> None:
        """Write what was counted since the last time."""
        totals, self._totals = self._totals, {}
        terms, self._terms = self._terms, {}
        for edition, (chunks, tokens) in totals.items():
            self._connection.execute(statements.ADD_TOTALS, (self._scope, edition, chunks, tokens))
            counted = sorted(terms[edition].items())
            self._connection.execute(
                statements.ADD_TERMS,
                (
                    self._scope,
                    edition,
                    [term for term, _ in counted],
                    [chunks for _, (chunks, _) in counted],
                    [stated for _, (_, stated) in counted],
                ),
            )

    def change(self, edition: int, keys: Sequence[int], sign: int) -> None:
        """Count stored chunks by their rows, as added (1) or as removed (-1)."""
        self.write()
        values = {"scope": self._scope, "edition": edition, "sign": sign, "keys": list(keys)}
        self._connection.execute(statements.CHANGE_TOTALS, values)
        self._connection.execute(
            statements.ADD_TERMS_OF if sign > 0 else statements.SUBTRACT_TERMS_OF, values
        )
