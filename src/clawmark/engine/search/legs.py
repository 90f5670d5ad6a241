"""The two legs of a search: passages with the query's words, and passages similar in meaning.

A leg reads the snapshot and returns what it found; a leg that cannot run says why, and the other
one answers."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from clawmark.embed.base import Embedder
from clawmark.engine.search.scoring import (
    INSTANT_MEANING,
    MODEL_MEANING,
    PRIOR_PASSAGES,
    SMALLEST_CROWD,
    Noise,
    Terms,
    TextMatch,
    VectorMatch,
    evidence_scale,
    noise_of_query,
    text_matches,
)
from clawmark.engine.search.weighted import calibrate
from clawmark.model.errors import EmbeddingError
from clawmark.model.values import Degraded, KeywordQuery, Query, Space, Term, Vector, noise_fact
from clawmark.text.keywords.query import are_names, query_terms

if TYPE_CHECKING:
    from clawmark.store.base import SearchSnapshot

RARE = 2
"""A term is rare if at most this many passages have it: a word that occurs once may lie where two
passages overlap."""
COMMON = 10
"""Two neighbouring terms that are both in more than one in this many passages say nothing together.
"""


FEWEST_MEDIA = 3
"""Fewer images and audio files than this cannot be compared with each other."""


class KeywordLeg(NamedTuple):
    """What the keywords found, best BM25 first."""

    terms: list[Term]
    queries: list[KeywordQuery]
    """One for each term."""
    known: Terms
    keys: list[int]
    rare: int
    """A bit for each name, identifier or code that hardly any passage has."""
    rare_keys: list[int]
    """The passages that have one of those."""


class Asked(NamedTuple):
    """The query's vectors, best embedder first; `why_not` if there are none."""

    vectors: tuple[tuple[Embedder, Space, Vector], ...]
    why_not: str
    degraded: Degraded | None
    milliseconds: float = 0.0


class VectorLeg(NamedTuple):
    """What the vectors found; `ran` is false if no embedder could be used."""

    ran: bool
    matches: dict[int, VectorMatch]
    provider: str
    model: str
    label: str
    why_not: str
    degraded: Degraded | None
    passages: int = SMALLEST_CROWD
    """The size of the answering space when its noise was last measured."""


NO_WORDS = KeywordLeg(terms=[], queries=[], known=Terms(0, [], []), keys=[], rare=0, rare_keys=[])


def any_term(terms: Sequence[Term]) -> KeywordQuery:
    """Return the query for passages with any of the terms."""
    return KeywordQuery(tuple(term.phrase for term in terms))


def keyword_leg(query: Query, snapshot: "SearchSnapshot") -> KeywordLeg:
    """Find the passages with any of the query's terms, and how rare each term is."""
    terms = query_terms(query.text)
    if not terms:
        return NO_WORDS
    keys = [key for key, _ in snapshot.search_keywords(any_term(terms), query.candidates)]
    if not keys:
        return NO_WORDS._replace(terms=terms)
    queries, total, counts = _stated_terms(snapshot, terms)
    known = Terms(total, counts, are_names(query.text, terms))
    rare, rare_keys = 0, list[int]()
    for number, (one, count, is_name) in enumerate(zip(queries, counts, known.names, strict=True)):
        if is_name and 0 < count <= RARE:
            rare |= 1 << number
            rare_keys += [key for key, _ in snapshot.search_keywords(one, RARE)]
    keys += [key for key in rare_keys if key not in keys]
    return KeywordLeg(
        terms=terms, queries=queries, known=known, keys=keys, rare=rare, rare_keys=rare_keys
    )


def _stated_terms(
    snapshot: "SearchSnapshot", terms: Sequence[Term]
) -> tuple[list[KeywordQuery], int, list[int]]:
    """Return a query for each term, the number of passages, and how many match each query.

    Terms are looked for in what passages state. A term that occurs only in questions without an
    answer is looked for there."""
    queries = [KeywordQuery((term.phrase,), stated_only=True) for term in terms]
    total, counts = snapshot.count_keywords(queries)
    unstated = [number for number, count in enumerate(counts) if not count]
    for number in unstated:
        queries[number] = queries[number]._replace(stated_only=False)
    asked = snapshot.count_keywords([queries[number] for number in unstated]).matches
    for number, count in zip(unstated, asked, strict=True):
        counts[number] = count
    return queries, total, counts


def text_leg_matches(
    words: KeywordLeg, snapshot: "SearchSnapshot", keys: Sequence[int]
) -> dict[int, TextMatch]:
    """Judge passages, found by either leg, by their keywords."""
    if not words.keys:
        return {}
    *by_term, together = snapshot.score_keywords([*words.queries, _telling_pairs(words)], keys)
    scores: dict[int, dict[int, float]] = {}
    for number, found in enumerate(by_term):
        for key, score in found.items():
            scores.setdefault(key, {})[number] = score
    return text_matches(scores, together, words.known)


def _telling_pairs(words: KeywordLeg) -> KeywordQuery:
    """The query for neighbouring terms close together, where at least one of them is not common."""
    phrases = [term.phrase for term in words.terms]
    pairs = zip(pairwise(phrases), pairwise(words.known.counts), strict=True)
    rare = [pair for pair, counts in pairs if min(counts) * COMMON <= words.known.total]
    return KeywordQuery(pairs=tuple(rare), stated_only=True)


def ask(text: str, embedders: Sequence[Embedder], spaces: Sequence[Space]) -> Asked:
    """Embed the query with the best embedder that works and with the instant one.

    This is done before a snapshot is opened: none may last as long as a service takes to answer. An
    embedder that fails is skipped and reported; a fallback is used only if those before it failed.
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


def vector_leg(
    query: Query, snapshot: "SearchSnapshot", asked: Asked, also: Sequence[int]
) -> VectorLeg:
    """Find the nearest passages, and judge the keyword leg's passages (`also`)."""
    there = {space.id for space in snapshot.spaces()} if asked.vectors else set()
    vectors = [one for one in asked.vectors if one[1].id in there]
    if not vectors:
        return VectorLeg(
            ran=False,
            matches={},
            provider="none",
            model="fts-only",
            label="keywords",
            why_not=asked.why_not or "no vectors yet",
            degraded=asked.degraded,
        )
    best, space, _ = vectors[0]
    matches = _judged(query, snapshot, vectors[0], also)
    if len(vectors) > 1 and snapshot.count_due(space.id):
        # Passages without a vector of the best embedder are judged by the instant one.
        matches = _judged(query, snapshot, vectors[-1], also) | matches
    return VectorLeg(
        ran=True,
        matches=matches,
        provider=best.identity.provider,
        model=best.identity.model,
        label=best.traits.label,
        why_not="",
        degraded=asked.degraded,
        passages=int(snapshot.facts(noise_fact(space.id)).get("passages", 0)),
    )


def _judged(
    query: Query,
    snapshot: "SearchSnapshot",
    asked: tuple[Embedder, Space, Vector],
    also: Sequence[int],
) -> dict[int, VectorMatch]:
    """Judge the nearest passages and some others by one embedder."""
    embedder, space, vector = asked
    cosines = snapshot.nearest(space.id, vector, query.candidates, also)
    traits = embedder.traits
    meaning = INSTANT_MEANING if traits.instant else MODEL_MEANING
    if query.fusion == "weighted":
        scores = {key: calibrate(cosine, traits.floor, traits.ceiling) for key, cosine in cosines}
    else:
        facts = snapshot.facts(noise_fact(space.id))
        noise = noise_of_query(_noise(facts), vector, traits.floor, traits.ceiling)
        judge = evidence_scale(*noise)
        scores = {key: judge(cosine) for key, cosine in cosines}
        if "media" in facts:
            scores = _with_media(query, snapshot, asked, facts["media"], noise, scores)
    return {key: VectorMatch(score, traits.label, meaning) for key, score in scores.items()}


def _with_media(
    query: Query,
    snapshot: "SearchSnapshot",
    asked: tuple[Embedder, Space, Vector],
    facts: dict[str, Any],
    noise: tuple[float, float, int],
    scores: dict[int, float],
) -> dict[int, float]:
    """Add the images and audio files that stand out among their kind.

    Their vectors lie apart from those of texts, so that few would be among the nearest passages:
    they are compared with each other. The fewer there are, the more the spread of all passages
    counts."""
    _, space, vector = asked
    cosines = dict(snapshot.nearest(space.id, vector, 0, facts["keys"]))
    if len(cosines) < FEWEST_MEDIA:
        return scores
    own = len(cosines) / (len(cosines) + PRIOR_PASSAGES)
    spread = own * float(facts["spread"]) + (1.0 - own) * noise[1]
    judge = evidence_scale(sum(cosines.values()) / len(cosines), spread, len(cosines))
    judged = {
        key: score
        for key, cosine in cosines.items()
        if (score := judge(cosine)) > 0.0 and (key in scores or not query.filters.summary)
    }
    best = sorted(judged, key=lambda key: (-judged[key], key))[: query.candidates]
    return scores | {key: max(judged[key], scores.get(key, 0.0)) for key in best}


def noise_of(snapshot: "SearchSnapshot", space: Space) -> Noise | None:
    """Return the measured noise of a space; None if it has not been measured."""
    return _noise(snapshot.facts(noise_fact(space.id)))


def _noise(facts: Mapping[str, Any]) -> Noise | None:
    return (
        Noise(bytes.fromhex(facts["centre"]), float(facts["spread"]), int(facts["passages"]))
        if facts
        else None
    )
