"""Keyword search in PostgreSQL: BM25 over the terms of one edition of one scope.

Candidates are the chunks with the rarest terms of a query; their scores are exact. In a scope with
at most `MOST_CANDIDATES` chunks that is all of them. In a larger one, where even the rarest term is
common, chunks with as many of the terms as possible are the candidates. Phrases that are not terms,
and pairs, are looked up by all of their words, and their positions are compared here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from typing import Any, NamedTuple

from clawmark.model.values import KeywordQuery
from clawmark.store.postgres.filtering import Selection
from clawmark.store.postgres.matching import (
    K1,
    STATED,
    WEIGHTS,
    B,
    Doc,
    Parts,
    Totals,
    contribution,
    frequency_of,
    parts_of,
    positions_of,
    rarity,
    score,
)
from clawmark.store.postgres.servers import Connection
from clawmark.store.postgres.tokens import Hasher, Phrase, unpack

FEW_CANDIDATES = 2_000
"""So many chunks are scored first: usually no other chunk can have a higher score."""
MOST_CANDIDATES = 20_000
"""So many chunks are scored for one query."""
MOST_SEEN = 5_000
"""So many chunks are scored for a term that more than `MOST_CANDIDATES` chunks have."""
MOST_COMBINED, MOST_LOOKUPS = 5, 8
"""So many common terms are combined, and so many of their combinations looked up."""
MOST_CHECKED = 10_000
"""So many chunks with all words of a phrase are checked for the phrase."""
_DOCS = (
    "SELECT w.key, w.length, w.columns, w.sequence, "
    "ARRAY(SELECT array_position(w.terms, u.term) "
    "FROM unnest(%s::bigint[]) WITH ORDINALITY u(term, place) ORDER BY u.place) "
    "FROM clawmark.words w "
)


class TermCounts(NamedTuple):
    """How many chunks have a term, and how many state it."""

    chunks: int
    stated: int


class KeywordIndex:
    """The words of one edition, as one snapshot sees them."""

    def __init__(
        self,
        connection: Connection,
        scope: int,
        edition: int,
        totals: Totals,
        staged: Sequence[int],
    ) -> None:
        self._connection = connection
        self._scope = scope
        self._totals = totals
        self._hasher = Hasher(scope, edition)
        self._visible = f"w.scope = {scope} AND w.edition = {edition}"
        if staged:
            self._visible += f" AND w.file <> ALL ('{{{','.join(map(str, staged))}}}'::bigint[])"
        self._counts: dict[int, TermCounts] = {}
        self._found: dict[tuple[Phrase, bool], dict[int, tuple[int, float]]] = {}

    def search(
        self, query: KeywordQuery, limit: int, selection: Selection | None
    ) -> list[tuple[int, float]]:
        """Return (key, score) of the best matches, among the selected chunks if some are."""
        parts = parts_of(query, self._hasher)
        if not self._totals.chunks or not (parts.phrases or parts.pairs):
            return []
        rare = self._rarities([parts])[parts.stated_only]
        counted = {term: self._count(term, parts.stated_only) for term in parts.single}
        single = sorted((term for term in counted if counted[term]), key=counted.__getitem__)
        extra = self._extra(parts, rare)
        if not single and not extra:
            return []
        adding = [(rare[term], term) for term in parts.single if counted[term]]
        found: list[tuple[int, float]] = []
        if selection is None and self._is_common(single, counted):
            keys = [*extra, *self._with_most_terms(single)]
            parameters: tuple[Any, ...] = (keys, [*extra], [*extra.values()], limit)
            found = self._ranked(
                "SELECT unnest(%s::bigint[]) AS key", parameters, self._sum(adding, parts)
            )
            if len(found) == limit:
                return found
        before: list[int] | None = None
        for most in (FEW_CANDIDATES, MOST_CANDIDATES) if selection is None else (MOST_CANDIDATES,):
            some = rarest(single, counted, most)
            if some == before:
                break
            before = some
            source, parameters = self._candidates(single, some, counted, extra, selection)
            parameters = (*parameters, [*extra], [*extra.values()], limit)
            found = self._ranked(source, parameters, self._sum(adding, parts))
            # No chunk without these terms has a higher score than this.
            highest = sum(one * (K1 + 1.0) for one, term in adding if term not in some)
            if len(some) == len(single) or (len(found) == limit and found[-1][1] > highest):
                break
        return found

    def _ranked(
        self, source: str, parameters: Sequence[Any], score_sql: str
    ) -> list[tuple[int, float]]:
        """Return the best candidates with their scores."""
        return self._connection.execute(
            f"WITH candidates AS ({source}) SELECT key, score FROM (SELECT w.key, "
            f"coalesce(e.score, 0) + {score_sql} AS score "
            # A row at a time by its key: PostgreSQL would read the whole scope for a few thousand.
            f"FROM candidates c CROSS JOIN LATERAL (SELECT * FROM clawmark.words w "
            f"WHERE {self._visible} AND w.key = c.key OFFSET 0) w "
            "LEFT JOIN unnest(%s::bigint[], %s::float8[]) e (key, score) ON e.key = w.key"
            ") scored WHERE score > 0 ORDER BY score DESC, key LIMIT %s",
            parameters,
        ).fetchall()

    def score(self, queries: Sequence[KeywordQuery], keys: Sequence[int]) -> list[dict[int, float]]:
        """Return, for each query, the scores of those of the given chunks that match it."""
        wanted = [parts_of(query, self._hasher) for query in queries]
        if not keys or not self._totals.chunks:
            return [{} for _ in queries]
        rare = self._rarities(wanted)
        docs = self._docs(keys, _words_of(wanted))
        return [
            {
                key: value
                for key, doc in docs.items()
                if (value := score(doc, parts, rare[parts.stated_only], self._totals)) is not None
            }
            for parts in wanted
        ]

    def count(self, queries: Sequence[KeywordQuery]) -> list[int]:
        """Count the chunks that match each query; filters do not apply."""
        wanted = [parts_of(query, self._hasher) for query in queries]
        self._load_counts(phrase.term for parts in wanted for phrase in parts.phrases)
        return [self._count_matches(parts) for parts in wanted]

    # --- statistics -------------------------------------------------------------------------------

    def _count_matches(self, parts: Parts) -> int:
        if not parts.phrases and not parts.pairs:
            return 0
        if len(parts.phrases) == 1 and not parts.pairs:
            (phrase,) = parts.phrases
            if phrase.is_term:
                return self._count(phrase.term, parts.stated_only)
            return len(self._matches(phrase, parts.stated_only))
        keys: set[int] = set()
        if parts.single:
            keys.update(self._keys_with(parts.single, is_all=False))
        for phrase in parts.long:
            keys.update(self._keys_with(phrase.words, is_all=True))
        for one, other in parts.pairs:
            keys.update(self._keys_with((*one.words, *other.words), is_all=True))
        rare = self._rarities([parts])[parts.stated_only]
        docs = self._docs(sorted(keys), _words_of([parts]))
        return sum(score(doc, parts, rare, self._totals) is not None for doc in docs.values())

    def _rarities(self, wanted: Sequence[Parts]) -> dict[bool, dict[int, float]]:
        """Return the weight of each phrase, by whether only statements count."""
        phrases = [(phrase, parts.stated_only) for parts in wanted for phrase in _all(parts)]
        self._load_counts(phrase.term for phrase, _ in phrases if phrase.is_term)
        rare: dict[bool, dict[int, float]] = {False: {}, True: {}}
        for phrase, stated_only in dict.fromkeys(phrases):
            count = (
                self._count(phrase.term, stated_only)
                if phrase.is_term
                else len(self._matches(phrase, stated_only))
            )
            rare[stated_only][phrase.term] = rarity(self._totals.chunks, count)
        return rare

    def _count(self, term: int, stated_only: bool) -> int:
        counts = self._counts[term]
        return counts.stated if stated_only else counts.chunks

    def _load_counts(self, terms: Iterable[int]) -> None:
        missing = list({term for term in terms if term not in self._counts})
        if not missing:
            return
        rows = self._connection.execute(
            "SELECT term, chunks, stated FROM clawmark.terms WHERE scope = %s AND term = ANY (%s)",
            (self._scope, missing),
        ).fetchall()
        self._counts.update(dict.fromkeys(missing, TermCounts(0, 0)))
        self._counts.update((term, TermCounts(chunks, stated)) for term, chunks, stated in rows)

    # --- candidates -------------------------------------------------------------------------------

    def _candidates(
        self,
        single: Sequence[int],
        some: Sequence[int],
        counted: Mapping[int, int],
        extra: Mapping[int, float],
        selection: Selection | None,
    ) -> tuple[str, tuple[Any, ...]]:
        """Return the query for the chunks to score, and its parameters."""
        if selection is not None:
            few = self._connection.execute(
                f"SELECT key FROM ({selection.sql}) s LIMIT {MOST_CANDIDATES + 1}",
                selection.parameters,
            ).fetchall()
            if len(few) <= MOST_CANDIDATES:
                return "SELECT unnest(%s::bigint[]) AS key", ([key for (key,) in few],)
        with_any = "SELECT key FROM clawmark.chunks_with(%s, %s, %s, %s) AS key"
        parts = ["SELECT unnest(%s::bigint[]) AS key"]
        parameters: list[Any] = [[*extra]]
        if len(single) > 1 and counted[single[0]] > MOST_CANDIDATES:
            # Every term is common: those with all of them come first.
            parts.append(with_any)
            parameters += [self._scope, list(single), True, MOST_SEEN]
        if some:
            is_few = sum(counted[term] for term in some) <= MOST_CANDIDATES
            parts.append(with_any)
            parameters += [self._scope, list(some), False, MOST_CANDIDATES if is_few else MOST_SEEN]
        source = " UNION ".join(parts)
        if selection is None:
            return source, tuple(parameters)
        return (
            f"SELECT key FROM ({source}) a WHERE key IN ({selection.sql})",
            (*parameters, *selection.parameters),
        )

    def _is_common(self, single: Sequence[int], counted: Mapping[int, int]) -> bool:
        """Whether a large scope has more chunks with the rarest term than are scored at first."""
        return (
            self._totals.chunks > MOST_CANDIDATES
            and len(single) > 1
            and counted[single[0]] > FEW_CANDIDATES
        )

    def _with_most_terms(self, single: Sequence[int]) -> list[int]:
        """Return chunks with all terms, then those with all but the most common ones."""
        keys: dict[int, None] = {}
        for terms in islice(_combinations(single), MOST_LOOKUPS):
            keys |= dict.fromkeys(self._keys_with(terms, is_all=True, most=FEW_CANDIDATES))
            if len(keys) >= FEW_CANDIDATES:
                break
        return list(keys)

    def _extra(self, parts: Parts, rare: Mapping[int, float]) -> dict[int, float]:
        """Return what phrases and pairs add to the score of each chunk that has them."""
        extra: dict[int, float] = {}
        for phrase in parts.long:
            for key, (length, frequency) in self._matches(phrase, parts.stated_only).items():
                added = contribution(rare[phrase.term], frequency, length, self._totals)
                extra[key] = extra.get(key, 0.0) + added
        for pair in parts.pairs:
            only = parts._replace(phrases=(), pairs=(pair,))
            words = _words_of([only])
            for key, doc in self._docs(self._keys_with(words, is_all=True), words).items():
                added_by_pair = score(doc, only, rare, self._totals)
                if added_by_pair is not None:
                    extra[key] = extra.get(key, 0.0) + added_by_pair
        return extra

    def _matches(self, phrase: Phrase, stated_only: bool) -> dict[int, tuple[int, float]]:
        """Return length and frequency for each chunk that has a phrase."""
        known = self._found.get((phrase, stated_only))
        if known is None:
            docs = self._docs(self._keys_with(phrase.words, is_all=True), phrase.words)
            known = {
                key: (doc.length, frequency_of(positions))
                for key, doc in docs.items()
                if (positions := positions_of(doc, phrase, stated_only=stated_only))
            }
            self._found[phrase, stated_only] = known
        return known

    def _keys_with(
        self, terms: Sequence[int], *, is_all: bool, most: int = MOST_CHECKED
    ) -> list[int]:
        rows = self._connection.execute(
            "SELECT key FROM clawmark.chunks_with(%s, %s, %s, %s) AS key",
            (self._scope, list(set(terms)), is_all, most),
        ).fetchall()
        return [key for (key,) in rows]

    def _docs(self, keys: Sequence[int], words: Sequence[int]) -> dict[int, Doc]:
        if not keys:
            return {}
        rows = self._connection.execute(
            f"{_DOCS} WHERE {self._visible} AND w.key = ANY (%s)",
            (list(words), list(keys)),
            binary=True,
        ).fetchall()
        return {
            key: Doc(
                length,
                unpack(columns, sequence),
                {
                    word: number - 1
                    for word, number in zip(words, numbers, strict=True)
                    if number is not None
                },
            )
            for key, length, columns, sequence, numbers in rows
        }

    def _sum(self, adding: Sequence[tuple[float, int]], parts: Parts) -> str:
        """Return the SQL of what terms add to a score: `matching.contribution`, summed up."""
        norm = (
            f"({K1 * (1.0 - B)!r}::float8 + {K1 * B / self._totals.average!r}::float8 * w.length)"
        )
        terms = ["0::float8"]
        for rare, term in adding:
            place = f"array_position(w.terms, '{term}'::bigint)"
            frequency = f"coalesce(w.stated[{place}], 0)::float8"
            if not parts.stated_only:
                frequency += (
                    f" + CASE WHEN w.asked IS NULL THEN 0 ELSE "
                    f"coalesce(w.asked[{place}], 0) * {WEIGHTS[STATED]!r}::float8 END"
                )
            terms.append(f"{rare * (K1 + 1.0)!r}::float8 * (1 - {norm} / ({norm} + {frequency}))")
        return f"({' + '.join(terms)})"


def rarest(single: Sequence[int], counted: Mapping[int, int], most: int) -> list[int]:
    """Return the rarest terms whose chunks are few enough to score, and at least one."""
    some, total = list(single[:1]), counted[single[0]] if single else 0
    for term in single[1:]:
        total += counted[term]
        if total > most:
            break
        some.append(term)
    return some


def _combinations(single: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield all terms, then fewer and fewer of them, the rarest first; at least two."""
    yield tuple(single)
    some = single[:MOST_COMBINED]
    for size in range(min(len(some), len(single) - 1), 1, -1):
        yield from combinations(some, size)


def _all(parts: Parts) -> list[Phrase]:
    return [*parts.phrases, *(phrase for pair in parts.pairs for phrase in pair)]


def _words_of(wanted: Sequence[Parts]) -> list[int]:
    """Return the terms of all words of some queries."""
    return list({word for parts in wanted for phrase in _all(parts) for word in phrase.words})
