"""Keyword search in PostgreSQL: BM25 over the terms of one edition of one scope.

A function of the database finds the chunks with the best scores, and those are scored again here
under the policies. It reads the chunks with the most valuable combinations of terms first, and
others only as long as they could be among the best: always if they are few, and if that is likely
in a large scope whose words are common. Phrases that are not terms, and pairs, are looked up by all
of their words, and their positions are compared here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from clawmark.store.postgres.tokens import Hasher, Phrase, array_text, unpack
from clawmark.store.thresholds import (
    MORE_ROWS,
    combinations,
    first_threshold,
    smallest_sets,
    threshold,
)

FEW_CHUNKS = 20_000
"""If no more chunks than this can match, the best ones are found with certainty."""
FIRST_CHUNKS = 1_000
"""So many chunks should be scored first."""
MOST_SCORED = 120_000
"""So many chunks are scored for one threshold, at 3 to 6 µs each."""
MOST_RANKED = 20_000
"""So many of the best chunks are ranked again under the policies, and with filters."""
MOST_TERMS = 6
"""So many terms, the rarest ones, decide which chunks are scored; the others count as well."""
NEGLIGIBLE = 0.05
"""A term of less than this share of the highest rarity does not decide."""
LIKELY_TF = 1.7
"""What BM25 hardly ever exceeds for a term, in units of its rarity; it never exceeds 2.2."""
MOST_TF = K1 + 1.0
MOST_CHECKED = 10_000
"""So many chunks with all words of a phrase are checked for the phrase."""
LOWER = 0.95
"""The threshold falls at least to this share while too few chunks are found."""
_GIVEN = "SELECT unnest(%s::bigint[]) AS key"
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


class Ranking(NamedTuple):
    """How chunks are ranked for one query."""

    adding: Sequence[tuple[float, int]]
    """The terms that count, with their rarities; a repeated term counts again."""
    counted: Mapping[int, int]
    """How many chunks have each of them."""
    extra: Mapping[int, float]
    """What phrases and pairs add to the scores of chunks."""
    stated_only: bool
    limit: int

    def worth(self) -> tuple[dict[int, float], float]:
        """Return the terms that decide which chunks are scored with their rarities, the highest
        first, and the sum of the rarities of the others."""
        rarities: dict[int, float] = {}
        for rare, term in self.adding:
            rarities[term] = rarities.get(term, 0.0) + rare
        ordered = sorted(rarities.items(), key=lambda item: -item[1])
        least = NEGLIGIBLE * ordered[0][1]
        worth = {term: rare for term, rare in ordered[:MOST_TERMS] if rare >= least}
        return worth, sum(rarities.values()) - sum(worth.values())

    def best(self, found: Mapping[int, float]) -> list[tuple[int, float]]:
        """Return the best of some chunks, with their scores."""
        return sorted(found.items(), key=lambda item: (-item[1], item[0]))[: self.limit]


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
        self._staged = list(staged)
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
        extra = self._extra(parts, rare)
        counted = {
            term: count for term in parts.single if (count := self._count(term, parts.stated_only))
        }
        if not counted and not extra:
            return []
        ranking = Ranking(
            adding=[(rare[term], term) for term in parts.single if term in counted],
            counted=counted,
            extra=extra,
            stated_only=parts.stated_only,
            limit=limit,
        )
        few = None if selection is None else self._few(selection)
        if few is not None:
            return self._ranked(_GIVEN, (few,), ranking)
        if not counted:
            return self._ranked(*self._among_best([], ranking, selection), ranking)
        return self._rank_likely(ranking, selection)

    def _rank_likely(
        self, ranking: Ranking, selection: Selection | None
    ) -> list[tuple[int, float]]:
        """Rank chunks with the most valuable combinations of terms, then others if necessary."""
        any_term = [(term,) for term in ranking.counted]
        matching = min(sum(ranking.counted.values()), self._totals.chunks)
        if matching <= FIRST_CHUNKS:
            return self._ranked(*self._among_best(any_term, ranking, selection), ranking)
        worth, others = ranking.worth()
        expected = combinations(worth, ranking.counted, self._totals.chunks)
        is_few = matching <= FEW_CHUNKS
        lowest = min(worth.values())
        floor = lowest if is_few else max(lowest, threshold(expected, MOST_SCORED))
        wanted = float(FIRST_CHUNKS)
        need = max(lowest, first_threshold(expected, wanted, ranking.limit))
        found: dict[int, float] = {}
        while True:
            sets = smallest_sets(worth, need)
            found.update(self._ranked(*self._among_best(sets, ranking, selection), ranking))
            best = ranking.best(found)
            enough = 0.0
            if len(best) == ranking.limit:
                # Chunks whose deciding terms are worth less than this are not among the best.
                enough = best[-1][1] / (MOST_TF if is_few else LIKELY_TF) - others
                if need <= enough or (need <= floor and (enough > 0.0 or not is_few)):
                    return best
            if need <= lowest:
                if len(worth) == len(any_term):
                    return best
                break
            wanted *= MORE_ROWS
            lower = min(LOWER * need, threshold(expected, wanted))
            need = max(floor, enough) if len(best) == ranking.limit else max(lowest, lower)
        found.update(self._ranked(*self._among_best(any_term, ranking, selection), ranking))
        return ranking.best(found)

    def _ranked(
        self, source: str, parameters: Sequence[Any], ranking: Ranking
    ) -> list[tuple[int, float]]:
        """Return the best of some chunks with their scores."""
        return self._connection.execute(
            f"WITH candidates AS ({source}) SELECT key, score FROM (SELECT w.key, "
            f"coalesce(e.score, 0) + {self._sum(ranking)} AS score "
            # A row at a time by its key: PostgreSQL would read the whole scope for a few thousand.
            f"FROM candidates c CROSS JOIN LATERAL (SELECT * FROM clawmark.words w "
            f"WHERE {self._visible} AND w.key = c.key OFFSET 0) w "
            "LEFT JOIN unnest(%s::bigint[], %s::float8[]) e (key, score) ON e.key = w.key"
            ") scored WHERE score > 0 ORDER BY score DESC, key LIMIT %s",
            (*parameters, [*ranking.extra], [*ranking.extra.values()], ranking.limit),
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

    def _few(self, selection: Selection) -> list[int] | None:
        """Return the keys of selected chunks; None if they are many."""
        rows = self._connection.execute(
            f"SELECT key FROM ({selection.sql}) s LIMIT {FEW_CHUNKS + 1}", selection.parameters
        ).fetchall()
        return [key for (key,) in rows] if len(rows) <= FEW_CHUNKS else None

    def _among_best(
        self, sets: Sequence[tuple[int, ...]], ranking: Ranking, selection: Selection | None
    ) -> tuple[str, tuple[Any, ...]]:
        """Return the query for the best chunks that have all terms of one of some sets, and for
        those with a phrase or a pair; and its parameters."""
        source, parameters = _GIVEN, list[Any]([[*ranking.extra]])
        if sets:
            source += f" UNION SELECT key FROM clawmark.best_with({', '.join(['%s'] * 10)}) AS key"
            parameters += [
                self._scope,
                [array_text(terms) for terms in sets],
                [term for _, term in ranking.adding],
                [rare * MOST_TF for rare, _ in ranking.adding],
                *self._norm(),
                0.0 if ranking.stated_only else WEIGHTS[STATED],
                self._staged,
                MOST_SCORED,
                min(ranking.limit, MOST_RANKED) if selection is None else MOST_RANKED,
            ]
        if selection is None:
            return source, tuple(parameters)
        return (
            f"SELECT key FROM ({source}) a WHERE key IN ({selection.sql})",
            (*parameters, *selection.parameters),
        )

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

    def _keys_with(self, terms: Sequence[int], *, is_all: bool) -> list[int]:
        rows = self._connection.execute(
            "SELECT key FROM clawmark.chunks_with(%s, %s, %s, %s) AS key",
            (self._scope, list(set(terms)), is_all, MOST_CHECKED),
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

    def _norm(self) -> tuple[float, float]:
        """Return what BM25 adds to a frequency: a constant, and a factor of the length."""
        return K1 * (1.0 - B), K1 * B / self._totals.average

    def _sum(self, ranking: Ranking) -> str:
        """Return the SQL of what terms add to a score: `matching.contribution`, summed up."""
        base, slope = self._norm()
        norm = f"({base!r}::float8 + {slope!r}::float8 * w.length)"
        terms = ["0::float8"]
        for rare, term in ranking.adding:
            place = f"array_position(w.terms, '{term}'::bigint)"
            frequency = f"coalesce(w.stated[{place}], 0)::float8"
            if not ranking.stated_only:
                frequency += (
                    f" + CASE WHEN w.asked IS NULL THEN 0 ELSE "
                    f"coalesce(w.asked[{place}], 0) * {WEIGHTS[STATED]!r}::float8 END"
                )
            terms.append(f"{rare * MOST_TF!r}::float8 * (1 - {norm} / ({norm} + {frequency}))")
        return f"({' + '.join(terms)})"


def _all(parts: Parts) -> list[Phrase]:
    return [*parts.phrases, *(phrase for pair in parts.pairs for phrase in pair)]


def _words_of(wanted: Sequence[Parts]) -> list[int]:
    """Return the terms of all words of some queries."""
    return list({word for parts in wanted for phrase in _all(parts) for word in phrase.words})
