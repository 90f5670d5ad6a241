"""The two legs of a search: passages that hold the query's words, and passages that are near it in
meaning.

A leg asks the index and returns what it found; a leg that cannot run says why and leaves the answer
to the other."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from clawmark.embed.base import Embedder
from clawmark.engine.search.scoring import (
    INSTANT_MEANING,
    MODEL_MEANING,
    SMALLEST_CROWD,
    Noise,
    Terms,
    TextMatch,
    VectorMatch,
    evidence_scale,
    noise_of_query,
    text_matches,
)
from clawmark.model.errors import EmbeddingError
from clawmark.model.values import Degraded, Query, Space, Term, Vector
from clawmark.store.sqlite.reader import STATED
from clawmark.store.sqlite.store import Reader
from clawmark.text.keywords.query import any_of, are_names, near_each_other, query_terms

RARE = 2
"""A term is rare when at most so many passages have it: a word that occurs once may lie where two
passages overlap.
"""
COMMON = 10
"""Two neighbouring terms that are both in more than one of so many passages say nothing by standing
together.
"""


class KeywordLeg(NamedTuple):
    """What the words found, best BM25 first."""

    terms: list[Term]
    known: Terms
    keys: list[int]
    rare: int
    """A bit for each name, identifier or code that hardly any passage has."""
    rare_keys: list[int]
    """The passages that have one of those."""


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
    passages: int = SMALLEST_CROWD
    """How many there were when chance was last measured in the space that answers."""


NO_WORDS = KeywordLeg(terms=[], known=Terms(0, [], []), keys=[], rare=0, rare_keys=[])


def keyword_leg(query: Query, reader: Reader) -> KeywordLeg:
    """The passages with any of the query's terms, and what the index knows about the terms."""
    terms = query_terms(query.text)
    if not terms:
        return NO_WORDS
    keys = [key for key, _ in reader.keywords(any_of(terms), query.candidates)]
    if not keys:
        return NO_WORDS._replace(terms=terms)
    terms, counts = _stated_terms(reader, terms)
    known = Terms(reader.count_rows_of_words(), counts, are_names(query.text, terms))
    rare, rare_keys = 0, list[int]()
    for number, (term, count, is_name) in enumerate(
        zip(terms, known.counts, known.names, strict=True)
    ):
        if is_name and 0 < count <= RARE:
            rare |= 1 << number
            rare_keys += [key for key, _ in reader.keywords(term.match, RARE)]
    keys += [key for key in rare_keys if key not in keys]
    return KeywordLeg(terms=terms, known=known, keys=keys, rare=rare, rare_keys=rare_keys)


def _stated_terms(reader: Reader, terms: Sequence[Term]) -> tuple[list[Term], list[int]]:
    """The terms, looked for in what passages state, and how many passages have each.

    A term that only occurs in questions without an answer is looked for there.
    """
    limited = [Term(term.text, STATED + term.match) for term in terms]
    counts = reader.count_matches([term.match for term in limited])
    for number, term in enumerate(terms):
        if not counts[number]:
            limited[number], (counts[number],) = term, reader.count_matches([term.match])
    return limited, counts


def text_leg_matches(
    words: KeywordLeg, reader: Reader, keys: Sequence[int]
) -> dict[int, TextMatch]:
    """What the words say of each of some passages, found by either leg."""
    if not words.keys:
        return {}
    scores = reader.term_scores([term.match for term in words.terms], keys)
    together = reader.keywords_among(_telling_pairs(words.terms, words.known), keys)
    return text_matches(scores, together, words.known)


def _telling_pairs(terms: Sequence[Term], known: Terms) -> str:
    """Neighbouring terms to look for close together, where at least one of them is not common."""
    plain = [Term(term.text, term.match.removeprefix(STATED)) for term in terms]
    pairs = zip(pairwise(plain), pairwise(known.counts), strict=True)
    near = near_each_other(
        [pair for pair, (one, other) in pairs if min(one, other) * COMMON <= known.total]
    )
    return f"{STATED}({near})" if near else ""


def ask(text: str, embedders: Sequence[Embedder], spaces: Sequence[Space]) -> Asked:
    """The query's vectors, by the best embedder that works and by the instant one.

    Done before a snapshot of the index is taken: none may last as long as a service takes to
    answer. An embedder that fails is left out and said so; a stand-in is asked only when those
    before it failed."""
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
    """The nearest passages, and the nearness of the keyword leg's passages (`also`)."""
    # Not asked without vectors: the spaces are kept as JSON, whose module is a thirtieth of a cold
    # keyword search.
    there = {space.id for space in reader.spaces()} if asked.vectors else set()
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
    matches = _judged(query, reader, vectors[0], also)
    if len(vectors) > 1 and reader.count_due_vectors(space.id):
        # Passages that wait for their better vector are judged by the instant one.
        matches = _judged(query, reader, vectors[-1], also) | matches
    return VectorLeg(
        ran=True,
        matches=matches,
        provider=best.identity.provider,
        model=best.identity.model,
        label=best.traits.label,
        why_not="",
        degraded=asked.degraded,
        passages=int(reader.noise(space.id).get("passages", 0)),
    )


def _judged(
    query: Query, reader: Reader, asked: tuple[Embedder, Space, Vector], also: Sequence[int]
) -> dict[int, VectorMatch]:
    """The nearest passages and some others, by one embedder."""
    embedder, space, vector = asked
    cosines = dict(reader.vectors(space.id, vector, query.candidates))
    cosines.update(
        reader.similarities(space.id, vector, [key for key in also if key not in cosines])
    )
    traits = embedder.traits
    judge = _scale(query, reader, asked)
    meaning = INSTANT_MEANING if traits.instant else MODEL_MEANING
    return {
        key: VectorMatch(judge(cosine), traits.label, meaning) for key, cosine in cosines.items()
    }


def _scale(
    query: Query, reader: Reader, asked: tuple[Embedder, Space, Vector]
) -> Callable[[float], float]:
    """How a cosine of this embedder becomes a score."""
    embedder, space, vector = asked
    floor, ceiling = embedder.traits.floor, embedder.traits.ceiling
    if query.fusion == "weighted":
        from clawmark.engine.search.weighted import calibrate

        return lambda cosine: calibrate(cosine, floor, ceiling)
    return evidence_scale(*noise_of_query(noise_of(reader, space), vector, floor, ceiling))


def noise_of(reader: Reader, space: Space) -> Noise | None:
    """What was measured about chance in a space; nothing when it has not been yet."""
    facts = reader.noise(space.id)
    return (
        Noise(bytes.fromhex(facts["centre"]), float(facts["spread"]), int(facts["passages"]))
        if facts
        else None
    )
