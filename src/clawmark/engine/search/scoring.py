"""How sure a search is that a passage answers the query: a number from 0 to 1.

Each leg gives evidence on its own scale, independent of the other candidates. The evidence adds up,
and a logistic function turns the sum into a confidence:

    confidence = 1 / (1 + exp(-(BIAS + TEXT * text + NAME * name + meaning * vector
                                + LINE * line + USER * user)))

- `text`: BM25 against its bound and the share of the query that is met, rare terms counting more
  (geometric mean).
- `name`: the rarest name, identifier or code of the query that the passage contains.
- `vector`: how far the cosine is above the noise of this index, in units of what chance reaches in
  an index of its size.
- `line`: the same for the best single line that states something; `user`: for the best statement of
  the user.

The weights were chosen with `bench/fit_ranking.py` and `bench/ranking.py`;
`docs/explanation/scoring.md` has the figures."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from clawmark.model.values import ChunkRow, Query, Vector

BIAS = -2.7
FEW = 0.4
"""What a vector space with few passages adds: the fewer there are, the likelier each is meant."""
WITHOUT_VECTORS = 0.8
"""Replaces the evidence of vectors where there are none, so that the threshold keeps its meaning.
"""
TEXT, NAME = 8.0, 2.3
INSTANT_MEANING, MODEL_MEANING = 1.4, 2.7
"""The weight of a cosine: of the instant embedder, which ignores word order, and of a model."""
LINE, USER = 1.0, 2.3
DEFAULT_VECTOR_WEIGHT, DEFAULT_TEXT_WEIGHT = 0.7, 0.3
MOST_TF = 2.2
"""The most BM25 gives for one term, in units of its rarity: k1 + 1 with FTS5's k1 of 1.2."""
SMALLEST_CROWD = 200
"""An index with fewer passages is treated as if it had this many: few passages say little about
chance."""
SMALLEST_SPACE = 50
"""The same for a vector space, whose initial values already come from the model."""
FEWEST_MEASURED = 8
"""A space with fewer passages is not measured."""
PRIOR_PASSAGES = 20
"""How many measured passages the initial values of a model are worth."""
MOST_VECTOR = 1.5


class Terms(NamedTuple):
    """How rare the terms of a query are."""

    total: int
    """How many passages the full-text index holds."""
    counts: list[int]
    """How many passages have each term."""
    names: list[bool]
    """Which terms are names, identifiers or codes."""


class TextMatch(NamedTuple):
    """The evidence of the keyword leg for one passage."""

    text: float
    name: float
    bm25: float
    mask: int
    """Bit n is set if the passage meets the query's n-th term."""


class VectorMatch(NamedTuple):
    """The evidence of the vector leg for one passage."""

    score: float
    space: str
    meaning: float = MODEL_MEANING
    """Its weight: `INSTANT_MEANING` or `MODEL_MEANING`."""


NO_TEXT, NO_VECTOR = TextMatch(text=0.0, name=0.0, bm25=0.0, mask=0), VectorMatch(0.0, "", 0.0)


class Noise(NamedTuple):
    """The cosines of unrelated texts in a vector space, measured on a sample of its own
    passages."""

    centre: Vector
    """The mean of the sampled vectors: its dot product with a query is the query's mean cosine."""
    spread: float
    """The standard deviation of the cosines of random pairs."""
    passages: int
    """How many vectors the space had when it was measured."""


class Candidate(NamedTuple):
    """One passage in the pipeline."""

    row: ChunkRow
    text: float
    name: float
    vector: float
    space: str
    bm25: float
    mask: int
    meaning: float
    score: float
    line: float = 0.0
    user: float = 0.0
    stated: float = 1.0
    """How much of the passage states something; questions without an answer are not evidence."""
    decay: float = 1.0
    when: float = 0.0
    """How well its days match a time named in the query, 0 to 1; a small bonus in the score."""
    rerank: float | None = None
    """The reranker's score, 0 to 1; None if it was not reranked."""
    is_exact: bool = False
    """Whether it meets every term of the query or a rare exact one: the threshold does not apply.
    """


def rarity(count: int, total: int) -> float:
    """The logarithm of how few passages have a term; always positive."""
    return math.log(1.0 + (max(total - count, 0) + 0.5) / (count + 0.5))


def text_matches(
    scores: Mapping[int, Mapping[int, float]], together: Mapping[int, float], terms: Terms
) -> dict[int, TextMatch]:
    """Compute the text evidence of each passage.

    `scores` holds, by passage, the BM25 score of each term it meets, by the term's number;
    `together` the scores of neighbouring terms that are close together."""
    total = max(terms.total, SMALLEST_CROWD)
    rarities = [rarity(count, total) for count in terms.counts]
    whole, top = sum(rarities), math.log(total + 1.0)
    # FTS5's own rarities are nearly 0 in small indexes; each score is raised to what it would be in
    # a larger one.
    weights = [_bm25_rarity(count, total) for count in terms.counts]
    raised = [
        weight / _bm25_rarity(count, terms.total)
        for weight, count in zip(weights, terms.counts, strict=True)
    ]
    bound = MOST_TF * sum(weights)
    matches = {}
    names = [
        min(1.0, worth / top) if is_name else 0.0
        for worth, is_name in zip(rarities, terms.names, strict=True)
    ]
    for key, met in scores.items():
        bm25, strength, share, name, mask = 0.0, together.get(key, 0.0) / 2.0, 0.0, 0.0, 0
        for number, score in met.items():
            bm25 += score
            strength += raised[number] * score
            share += rarities[number]
            mask |= 1 << number
            if names[number] > name:
                name = names[number]
        text = math.sqrt(max(0.0, min(1.0, strength / bound)) * share / whole)
        matches[key] = TextMatch(text=text, name=name, bm25=bm25, mask=mask)
    return matches


def _bm25_rarity(count: int, total: int) -> float:
    """What FTS5 multiplies a term's frequency with."""
    return max(1e-6, math.log((max(0, total - count) + 0.5) / (count + 0.5)))


def evidence_scale(mean: float, spread: float, passages: int) -> Callable[[float], float]:
    """Return a function for how far a cosine is above chance: 0 for the mean, 1 for about the best
    of random passages."""
    height = spread * math.sqrt(2.0 * math.log(max(passages, SMALLEST_SPACE)))

    def evidence(cosine: float) -> float:
        above = (cosine - mean) / height
        return 0.0 if above < 0.0 else above if above < MOST_VECTOR else MOST_VECTOR

    return evidence


def noise_of_query(
    noise: Noise | None, query: Vector, floor: float, ceiling: float
) -> tuple[float, float, int]:
    """Return mean and spread of a query's cosines with unrelated passages, and the number of
    passages.

    A model's built-in floor and ceiling are the initial values; the more passages were measured,
    the less they count."""
    start_spread = (ceiling - floor) / 10.0
    start_mean = floor + 2.0 * start_spread
    if noise is None or len(noise.centre) != len(query):
        return start_mean, start_spread, 0
    # Imported late: a keyword search does not need it.
    from clawmark.store.similarity import dot_products

    (mean,) = dot_products(query, [noise.centre])
    own = noise.passages / (noise.passages + PRIOR_PASSAGES)
    return (
        own * mean + (1.0 - own) * start_mean,
        own * noise.spread + (1.0 - own) * start_spread,
        noise.passages,
    )


def bias_of(passages: int) -> float:
    """Return the constant of the sum for a space that had this many passages when it was
    measured."""
    return BIAS + FEW * math.log(
        SMALLEST_CROWD / max(FEWEST_MEASURED, min(passages, SMALLEST_CROWD))
    )


def confidence(candidate: Candidate, query: Query, bias: float = BIAS) -> float:
    """Turn the evidence of a candidate into a probability."""
    by_meaning = (
        candidate.meaning * candidate.vector + LINE * candidate.line + USER * candidate.user
    )
    return _probability(query, TEXT * candidate.text + NAME * candidate.name, by_meaning, bias)


def best_keys(
    query: Query,
    texts: Mapping[int, TextMatch],
    vectors: Mapping[int, VectorMatch],
    most: int,
    always: Sequence[int] = (),
    bias: float = BIAS,
) -> dict[int, float]:
    """Return the best passages of both legs and those in `always`, with their confidence; only
    these are read."""
    scores = {}
    for key in texts.keys() | vectors.keys():
        text, vector = texts.get(key), vectors.get(key)
        by_words = TEXT * text.text + NAME * text.name if text else 0.0
        scores[key] = _probability(
            query, by_words, vector.meaning * vector.score if vector else 0.0, bias
        )
    best = dict(sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:most])
    return best | {key: scores[key] for key in always if key in scores}


def merge(
    scores: Mapping[int, float],
    rows: Mapping[int, ChunkRow],
    texts: Mapping[int, TextMatch],
    vectors: Mapping[int, VectorMatch],
    terms: int,
) -> list[Candidate]:
    """Make candidates of the passages that were read, best first; `terms` is how many the query
    has."""
    every_term = (1 << terms) - 1
    candidates = []
    for key, row in rows.items():
        text, vector = texts.get(key, NO_TEXT), vectors.get(key, NO_VECTOR)
        candidates.append(
            Candidate(
                row=row,
                text=text.text,
                name=text.name,
                vector=vector.score,
                space=vector.space,
                bm25=text.bm25,
                mask=text.mask,
                meaning=vector.meaning,
                score=scores[key],
                is_exact=terms > 0 and text.mask == every_term,
            )
        )
    return ranked(candidates)


def _probability(query: Query, by_words: float, by_meaning: float, bias: float) -> float:
    total = (
        bias
        + query.text_weight / DEFAULT_TEXT_WEIGHT * by_words
        + query.vector_weight / DEFAULT_VECTOR_WEIGHT * by_meaning
    )
    return 1.0 / (1.0 + math.exp(-total))


def ranked(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Sort best first; equal ones by path and line."""
    return sorted(
        candidates,
        key=lambda candidate: (-candidate.score, candidate.row.path, candidate.row.start_line),
    )


def raise_exact(candidates: Sequence[Candidate], rare: int, first: int = 3) -> list[Candidate]:
    """Move the best passage with each rare exact term into the first three; `rare` has a bit for
    each such term.

    Other passages keep their order. If there are more than three such passages, the best three come
    first."""
    if not rare:
        return list(candidates)
    bits = [number for number in range(rare.bit_length()) if rare >> number & 1]
    best = {
        next((at for at, one in enumerate(candidates) if one.mask >> number & 1), -1)
        for number in bits
    } - {-1}
    exact = sorted(best)[:first]
    others = [at for at in range(len(candidates)) if at not in exact]
    room = first - len(exact)
    order = [*sorted([*exact, *others[:room]]), *others[room:]]
    return [candidates[at]._replace(is_exact=candidates[at].is_exact or at in best) for at in order]
