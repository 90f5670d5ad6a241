"""The two legs of a search: chunks that hold the query's words, and chunks that are near it in meaning.

A leg asks the index and answers with what it found; a leg that cannot run says why and leaves the answer to the other.
"""

from collections.abc import Sequence
from itertools import pairwise

from clawmark.embed.base import Embedder
from clawmark.errors import EmbeddingError
from clawmark.index.store import Reader
from clawmark.search.fuse import TextMatch, VectorMatch, calibrate, term_weights
from clawmark.text.query import any_of, near_each_other, query_terms
from clawmark.types import Degraded, Query, Space, Term, Vector
from clawmark.values import NamedTuple

# With two embedders the instant one keeps a say: it finds what the better one misses. In trials on locomo and notes that
# was up to a point of recall over the better one alone, within their noise, and 0.25 to 0.45 did alike; how such constants
# were chosen is told in docs/explanation/scoring.md.
INSTANT_SHARE = 0.35


class KeywordLeg(NamedTuple):
    """What the words found."""

    terms: list[Term]
    weights: list[float]
    matches: dict[int, TextMatch]


class Asked(NamedTuple):
    """The query as the embedders see it, best first; without vectors it says why."""

    vectors: tuple[tuple[Embedder, Space, Vector], ...]
    why_not: str
    degraded: Degraded | None
    milliseconds: float = 0.0


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
    found = reader.keywords(any_of(terms), query.candidates)
    keys = [key for key, _ in found]
    met = reader.matched_terms([term.match for term in terms], keys) if len(terms) > 1 else dict.fromkeys(keys, 1)
    counts = [sum(mask >> number & 1 for mask in met.values()) for number in range(len(terms))]
    together = reader.keywords_among(_telling_pairs(terms, counts, len(keys)), keys)
    # Every word counts twice on its own, so that a single rare word still wins over two common ones side by side.
    scores = {key: 2 * bm25 + together.get(key, 0.0) for key, bm25 in found}
    ranked = sorted(scores.items(), key=lambda item: -item[1])
    matches = {key: TextMatch(score, met.get(key, 0)) for key, score in ranked}
    return KeywordLeg(terms, term_weights(counts), matches)


def _telling_pairs(terms: Sequence[Term], counts: Sequence[int], total: int) -> str:
    """Neighbouring terms to look for close together, where at least one of them is not in most candidates anyway.

    Recall@6 of keywords without and with nearness: longmemeval 0.57 and 0.65, notes 0.81 and 0.82, locomo 0.889 and 0.891.
    Pairs of common words add nothing to that, and cost the most.
    """
    pairs = zip(pairwise(terms), pairwise(counts), strict=True)
    return near_each_other([pair for pair, (one, other) in pairs if min(one, other) * 2 <= total])


def ask(text: str, embedders: Sequence[Embedder], spaces: Sequence[Space]) -> Asked:
    """The query's vectors, by the best embedder that works and by the instant one.

    Done before a snapshot of the index is taken: none may last as long as a service takes to answer. An embedder that
    fails is left out and said so; a stand-in is asked only when those before it failed.
    """
    if not embedders:
        return Asked((), "no embedder is configured", None)
    known = {space.identity: space for space in spaces if space.ready}
    ready = [embedder for embedder in reversed(embedders) if embedder.identity in known]
    if not ready:
        return Asked((), "no vectors yet", None)
    usable = [embedder for embedder in ready if embedder.covers(text)]
    if not usable:
        return Asked((), f"{ready[0].traits.label} does not know the language of the query", None)
    degraded = None
    vectors: list[tuple[Embedder, Space, Vector]] = []
    for embedder in usable:
        if vectors and not embedder.traits.instant:
            continue
        try:
            vectors.append((embedder, known[embedder.identity], embedder.embed_query(text)))
        except EmbeddingError as error:
            degraded = degraded or Degraded(error.message, error.hint)
    return Asked(tuple(vectors), "" if vectors else "every embedder failed", degraded)


def vector_leg(query: Query, reader: Reader, asked: Asked, also: Sequence[int]) -> VectorLeg:
    """The nearest chunks, and the nearness of the keyword leg's chunks (`also`)."""
    # Not asked without vectors: the spaces are kept as JSON, whose module is a thirtieth of a cold keyword search.
    there = {space.id for space in reader.spaces()} if asked.vectors else set()
    vectors = [one for one in asked.vectors if one[1].id in there]
    if not vectors:
        return VectorLeg(False, {}, "none", "fts-only", "keywords", asked.why_not or "no vectors yet", asked.degraded)
    best = vectors[0][0]
    matches = _near(reader, vectors, query.candidates, also)
    return VectorLeg(True, matches, best.identity.provider, best.identity.model, best.traits.label, "", asked.degraded)


def _near(
    reader: Reader, asked: Sequence[tuple[Embedder, Space, Vector]], limit: int, also: Sequence[int]
) -> dict[int, VectorMatch]:
    """The best embedder's word, with a share of the instant one's where that helps; that alone for chunks that wait."""
    (best, space, vector), rest = asked[0], asked[1:]
    blends = best.traits.blends
    matches = _judged(reader, best, space, vector, limit, also)
    if not rest or not (blends or reader.count_due_vectors(space.id)):
        return matches
    instant, space, vector = rest[-1]
    other = _judged(reader, instant, space, vector, limit, list(matches) if blends else also)
    if blends:
        best_again = _judged(reader, *asked[0], 0, [key for key in other if key not in matches])
        matches |= best_again
    for key, match in other.items():
        if key not in matches:
            matches[key] = match
        elif blends:
            score = (1 - INSTANT_SHARE) * matches[key].score + INSTANT_SHARE * match.score
            matches[key] = VectorMatch(score, f"{matches[key].space} + {match.space}")
    return matches


def _judged(
    reader: Reader, embedder: Embedder, space: Space, vector: Vector, limit: int, also: Sequence[int]
) -> dict[int, VectorMatch]:
    """The nearest chunks and some others, by one embedder."""
    cosines = dict(reader.vectors(space.id, vector, limit))
    cosines.update(reader.similarities(space.id, vector, [key for key in also if key not in cosines]))
    traits = embedder.traits
    return {
        key: VectorMatch(calibrate(cosine, traits.floor, traits.ceiling), traits.label) for key, cosine in cosines.items()
    }
