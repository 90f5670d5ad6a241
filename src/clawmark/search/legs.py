"""The two legs of a search: chunks that hold the query's words, and chunks that are near it in meaning.

A leg asks the index and answers with what it found; a leg that cannot run says why and leaves the answer to the other.
"""

from collections.abc import Sequence
from typing import NamedTuple

from clawmark.embed.base import Embedder
from clawmark.errors import EmbeddingError
from clawmark.index.store import Reader
from clawmark.search.fuse import TextMatch, VectorMatch, calibrate, term_weights
from clawmark.text.query import any_of, near_each_other, query_terms
from clawmark.types import Degraded, Query, Space, Term, Vector

# With two embedders the instant one keeps a say: it finds what the better one misses. Measured on locomo and notes
# (bench/results/exam-default.json): about a point of recall and two of nDCG over the better one alone; 0.25 to 0.45 alike.
INSTANT_SHARE = 0.35


class KeywordLeg(NamedTuple):
    """What the words found."""

    terms: list[Term]
    weights: list[float]
    matches: dict[int, TextMatch]


class VectorLeg(NamedTuple):
    """What the meaning found; `ran` is false when no embedder could or should be asked."""

    ran: bool
    matches: dict[int, VectorMatch]
    provider: str
    model: str
    label: str
    why_not: str
    degraded: Degraded | None


def keyword_leg(query: Query, reader: Reader) -> KeywordLeg:
    """The chunks with any of the query's terms, best BM25 first, and which terms each one meets."""
    terms = query_terms(query.text)
    if not terms:
        return KeywordLeg([], [], {})
    ranked = _ranked(query, reader, terms)
    keys = [key for key, _ in ranked]
    met = reader.matched_terms([term.match for term in terms], keys) if len(terms) > 1 else dict.fromkeys(keys, 1)
    counts = [sum(mask >> number & 1 for mask in met.values()) for number in range(len(terms))]
    weights = term_weights(counts)
    return KeywordLeg(terms, weights, {key: TextMatch(bm25, met.get(key, 0)) for key, bm25 in ranked})


def _ranked(query: Query, reader: Reader, terms: Sequence[Term]) -> list[tuple[int, float]]:
    """BM25 of the words, and again of neighbouring words where they stand together in the chunk.

    Every word counts twice on its own, so that a single rare word still wins. Recall@6 of keywords without and with
    nearness: longmemeval 0.57 and 0.65, notes 0.81 and 0.82, locomo 0.889 and 0.891. A second neighbour finds no more.
    """
    found = reader.keywords(any_of(terms), query.candidates)
    together = reader.keywords_among(near_each_other(terms), [key for key, _ in found])
    scores = {key: 2 * score + together.get(key, 0.0) for key, score in found}
    return sorted(scores.items(), key=lambda item: -item[1])


def vector_leg(query: Query, reader: Reader, embedders: Sequence[Embedder], also: Sequence[int]) -> VectorLeg:
    """The nearest chunks by every ready embedder, and the nearness of the keyword leg's chunks (`also`).

    An embedder that fails is left out and said so; a chunk that waits for its vector in one space is judged by the other.
    """
    if not embedders:
        return _no_leg("no embedder is configured")
    spaces = {space.identity: space for space in reader.spaces() if space.ready}
    ready = [embedder for embedder in reversed(embedders) if embedder.identity in spaces]
    if not ready:
        return _no_leg("no vectors yet")
    usable = [embedder for embedder in ready if embedder.covers(query.text)]
    if not usable:
        return _no_leg(f"{ready[0].traits.label} does not know the language of the query")
    degraded = None
    asked: list[tuple[Embedder, Space, Vector]] = []
    for embedder in usable:
        try:
            asked.append((embedder, spaces[embedder.identity], embedder.embed_query(query.text)))
        except EmbeddingError as error:
            degraded = degraded or Degraded(error.message, error.hint)
    if not asked:
        return _no_leg("every embedder failed")._replace(degraded=degraded)
    best = asked[0][0]
    matches = _near(reader, asked, query.candidates, also)
    return VectorLeg(True, matches, best.identity.provider, best.identity.model, best.traits.label, "", degraded)


def _near(
    reader: Reader, asked: Sequence[tuple[Embedder, Space, Vector]], limit: int, also: Sequence[int]
) -> dict[int, VectorMatch]:
    """Every embedder's candidates, each judged by all of them."""
    tables = [dict(reader.vectors(space.id, vector, limit)) for _, space, vector in asked]
    keys = dict.fromkeys([key for table in tables for key in table] + list(also))
    for (_, space, vector), table in zip(asked, tables, strict=True):
        table.update(reader.similarities(space.id, vector, [key for key in keys if key not in table]))
    matches = {}
    for key in keys:
        scores = [
            (calibrate(table[key], embedder.traits.floor, embedder.traits.ceiling), embedder.traits.label)
            for (embedder, _, _), table in zip(asked, tables, strict=True)
            if key in table
        ]
        if scores:
            matches[key] = _blend(scores)
    return matches


def _blend(scores: Sequence[tuple[float, str]]) -> VectorMatch:
    """The best embedder's word, and a share of the instant one's where both have one."""
    (best, label), rest = scores[0], scores[1:]
    if not rest:
        return VectorMatch(best, label)
    return VectorMatch((1 - INSTANT_SHARE) * best + INSTANT_SHARE * rest[-1][0], f"{label} + {rest[-1][1]}")


def _no_leg(why: str) -> VectorLeg:
    return VectorLeg(False, {}, "none", "fts-only", "keywords", why, None)
