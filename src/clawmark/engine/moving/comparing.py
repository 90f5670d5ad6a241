"""Compares two stores row by row: files, chunks, words, vectors, cached vectors and facts.

Words are compared by what a search sees of them: how many chunks have each word, the score of every
chunk for some of its own words, and the best hits of some words. A score depends on every word of
the chunk."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from clawmark.engine.moving.copying import FACTS, VECTORS_AT_ONCE, Show, shared_noise
from clawmark.engine.sync.publish import stored_chunks, words_for
from clawmark.model.documents import Chunk
from clawmark.model.values import FileRow, Identity, KeywordQuery, Space
from clawmark.store.base import InspectedSnapshot, ManagedStore

FILES_AT_ONCE, WORDS_AT_ONCE = 50, 500
WORDS_OF_A_FILE = 12
"""So many words of a file are scored."""
ANSWERS, HITS = 500, 10
"""So many words are searched for, and the scores of so many hits compared."""
TOLERANCE = 1e-6
"""Two stores sum up a score in another order."""


class Difference(NamedTuple):
    """One thing that differs: where, and what."""

    place: str
    what: str


class Comparison(NamedTuple):
    """How many rows were compared, and which of them differ."""

    files: int = 0
    chunks: int = 0
    words: int = 0
    vectors: int = 0
    cached: int = 0
    differences: tuple[Difference, ...] = ()


class SpacePair(NamedTuple):
    """A vector space in both stores, and the keys that are due in each."""

    source: Space
    target: Space
    due_in_source: set[int]
    due_in_target: set[int]


def compare(source: ManagedStore, target: ManagedStore, show: Show) -> Comparison:
    """Compare everything that was moved."""
    comparing = _Comparing(source, target, show)
    comparing.spaces()
    comparing.files()
    comparing.words()
    comparing.answers()
    comparing.cache()
    comparing.facts()
    comparing.integrity()
    return comparing.report()


class _Comparing:
    """One comparison, with what was found so far."""

    def __init__(self, source: ManagedStore, target: ManagedStore, show: Show) -> None:
        self._source = source
        self._target = target
        self._show = show
        self._differences: list[Difference] = []
        self._pairs: list[SpacePair] = []
        self._words: set[str] = set()
        self._files = self._chunks = self._vectors = self._cached = 0

    def report(self) -> Comparison:
        return Comparison(
            files=self._files,
            chunks=self._chunks,
            words=len(self._words),
            vectors=self._vectors,
            cached=self._cached,
            differences=tuple(self._differences),
        )

    def _differ(self, place: str, what: str) -> None:
        self._differences.append(Difference(place, what))

    def spaces(self) -> None:
        with self._source.snapshot() as left, self._target.snapshot() as right:
            known = {space.identity: space for space in right.spaces()}
            for space in left.spaces():
                other = known.pop(space.identity, None)
                if other is None or other.ready != space.ready or other.vectors < space.vectors:
                    self._differ(space.identity.model, "has fewer vectors, or is not ready")
                if other is None:
                    continue
                if shared_noise(left, space.id) != shared_noise(right, other.id):
                    self._differ(space.identity.model, "has another measured noise")
                due = (set(left.due_keys(space.id)), set(right.due_keys(other.id)))
                self._pairs.append(SpacePair(space, other, *due))
            for identity in known:
                self._differ(identity.model, "has vectors that the source does not have")

    def files(self) -> None:
        with self._source.snapshot() as left, self._target.snapshot() as right:
            wanted, known = left.files(), right.files()
        for path in known.keys() - wanted.keys():
            self._differ(path, "is not in the source")
        rows = iter(wanted.values())
        while some := list(islice(rows, FILES_AT_ONCE)):
            with self._source.snapshot() as left, self._target.snapshot() as right:
                for row in some:
                    if known.get(row.path) != row:
                        self._differ(row.path, "is missing, or of another version")
                    else:
                        self._file(row, left, right)
            self._show("compared files", self._files, len(wanted))

    def _file(self, row: FileRow, left: InspectedSnapshot, right: InspectedSnapshot) -> None:
        self._files += 1
        chunks = stored_chunks(left, row)
        if chunks != stored_chunks(right, row):
            self._differ(row.path, "has other chunks")
            return
        self._chunks += len(chunks)
        keys = [[chunk.key for chunk in snapshot.chunks_of(row.path)] for snapshot in (left, right)]
        for pair in self._pairs:
            self._compare_vectors(row, pair, left, right, keys)
        words = list(_distinct_words(row, chunks))
        self._words.update(words)
        if not words:
            return
        query = KeywordQuery(tuple(words[:: math.ceil(len(words) / WORDS_OF_A_FILE)]))
        scores = [
            [found.get(key, 0.0) for key in some]
            for some, (found,) in (
                (keys[0], left.score_keywords([query], keys[0])),
                (keys[1], right.score_keywords([query], keys[1])),
            )
        ]
        if not _are_equal(*scores):
            self._differ(row.path, "has other words")

    def _compare_vectors(
        self,
        row: FileRow,
        pair: SpacePair,
        left: InspectedSnapshot,
        right: InspectedSnapshot,
        keys: Sequence[Sequence[int]],
    ) -> None:
        wanted = left.due_chunks(pair.source.id, keys[0])
        found = right.due_chunks(pair.target.id, keys[1])
        for one, other in zip(wanted, found, strict=True):
            if one.key in pair.due_in_source:
                continue
            if other.key in pair.due_in_target or one.vector != other.vector:
                self._differ(row.path, f"has another vector of {pair.source.identity.model}")
                return
            self._vectors += one.vector is not None

    def words(self) -> None:
        words = sorted(self._words)
        for start in range(0, len(words), WORDS_AT_ONCE):
            some = words[start : start + WORDS_AT_ONCE]
            queries = [KeywordQuery((word,)) for word in some]
            with self._source.snapshot() as left, self._target.snapshot() as right:
                wanted, found = left.count_keywords(queries), right.count_keywords(queries)
            if wanted.total != found.total:
                self._differ("words", f"belong to {found.total} chunks, not to {wanted.total}")
                return
            for word, one, other in zip(some, wanted.matches, found.matches, strict=True):
                if one != other:
                    self._differ(f"the word {word!r}", f"is in {other} chunks, not in {one}")
            self._show("compared words", start + len(some), len(words))

    def answers(self) -> None:
        words = sorted(self._words)
        some = words[:: max(1, len(words) // ANSWERS)]
        for number, word in enumerate(some):
            query = KeywordQuery((word,))
            with self._source.snapshot() as left, self._target.snapshot() as right:
                scores = [
                    [score for _, score in snapshot.search_keywords(query, HITS)]
                    for snapshot in (left, right)
                ]
            if not _are_equal(*scores):
                self._differ(f"the word {word!r}", "has other hits")
            self._show("compared answers", number + 1, len(some))

    def cache(self) -> None:
        with self._source.snapshot() as snapshot:
            wanted = snapshot.cached_hashes()
        total = sum(map(len, wanted.values()))
        for identity, texts in wanted.items():
            for start in range(0, len(texts), VECTORS_AT_ONCE):
                self._compare_cached(identity, texts[start : start + VECTORS_AT_ONCE])
                self._show("compared cache", self._cached, total)

    def _compare_cached(self, identity: Identity, texts: Sequence[str]) -> None:
        with self._source.snapshot() as left, self._target.snapshot() as right:
            wanted, found = left.cached(identity, texts), right.cached(identity, texts)
        for text, vector in wanted.items():
            self._cached += 1
            if found.get(text) != vector:
                self._differ(
                    f"the cached vector {text[:12]}", f"of {identity.model} is missing or different"
                )

    def facts(self) -> None:
        with self._source.snapshot() as left, self._target.snapshot() as right:
            for name in FACTS:
                if left.facts(name) != right.facts(name):
                    self._differ(f"the fact {name}", "is different")

    def integrity(self) -> None:
        with self._target.snapshot() as snapshot:
            for problem in snapshot.integrity_problems():
                self._differ("the target", problem)


def _are_equal(scores: Sequence[float], others: Sequence[float]) -> bool:
    return len(scores) == len(others) and all(
        math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=1e-9)
        for one, other in zip(scores, others, strict=True)
    )


def _distinct_words(row: FileRow, chunks: Sequence[Chunk]) -> Iterator[str]:
    """Yield the words of a file, each once."""
    words = (
        word for columns in words_for(row, chunks) for text in columns for word in text.split()
    )
    return iter(dict.fromkeys(word.replace('"', "") for word in words if word.strip('"')))
