"""Score captured entries for a query, with the same calibrated evidence as the built-in search.

Words and vectors give evidence on their own; `engine.search.scoring` adds it up. Words are
compared in memory, because there are few entries: letters are folded and English endings removed
on both sides."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from clawmark.backends.lancedb.entries import Captured
from clawmark.embed.base import Traits
from clawmark.engine.search.scoring import (
    BIAS,
    INSTANT_MEANING,
    MODEL_MEANING,
    NO_TEXT,
    NO_VECTOR,
    WITHOUT_VECTORS,
    Terms,
    TextMatch,
    VectorMatch,
    best_keys,
    bias_of,
    evidence_scale,
    noise_of_query,
    text_matches,
)
from clawmark.model.explanation import CandidateStory
from clawmark.model.values import Query
from clawmark.text.keywords.query import are_names, query_terms
from clawmark.text.keywords.words import index_words

K1, B = 1.2, 0.75
"""BM25, as FTS5 computes it."""
_WORD = re.compile(r"[^\W_]+")
_ENDING = re.compile(r"(?:ies|ing|ied|ed|es|s|e|y)$")


class Meaning(NamedTuple):
    """The vector leg: the cosines of the nearest entries, and the model that made them."""

    cosines: Mapping[str, float]
    traits: Traits


class Ranked(NamedTuple):
    """An entry with its score."""

    entry: Captured
    score: float
    text: TextMatch
    vector: VectorMatch


def rank(query: Query, entries: Sequence[Captured], meaning: Meaning | None) -> list[Ranked]:
    """Return the entries with any evidence, best first; `meaning` is None without vectors.

    Scores have two digits; of equal ones the newer entry comes first, as it may correct the other.
    """
    texts = _by_words(query.text, entries)
    vectors = _by_meaning(entries, meaning) if meaning is not None else {}
    bias = BIAS + WITHOUT_VECTORS if meaning is None else bias_of(len(entries))
    scores = best_keys(query, texts, vectors, len(entries), bias=bias)
    ranked = [
        Ranked(
            entry=entries[at],
            score=round(score, 2),
            text=texts.get(at, NO_TEXT),
            vector=vectors.get(at, NO_VECTOR),
        )
        for at, score in scores.items()
    ]
    return sorted(
        ranked,
        key=lambda one: (
            -one.score,
            -one.entry.created_ms,
            -one.entry.importance,
            one.entry.id,
        ),
    )


def story(number: int, one: Ranked, citation: str) -> CandidateStory:
    """Explain a hit in the form of the built-in search."""
    return CandidateStory(
        citation=citation,
        vector=one.vector.score,
        vector_space=one.vector.space,
        text=one.text.text,
        name=one.text.name,
        line=0.0,
        user=0.0,
        stated=1.0,
        bm25=one.text.bm25,
        terms="",
        decay=1.0,
        score=one.score,
        outcome=f"hit {number}",
    )


def _by_meaning(entries: Sequence[Captured], meaning: Meaning) -> dict[int, VectorMatch]:
    traits = meaning.traits
    mean, spread, _ = noise_of_query(None, b"", traits.floor, traits.ceiling)
    evidence = evidence_scale(mean, spread, len(entries))
    weight = INSTANT_MEANING if traits.instant else MODEL_MEANING
    return {
        at: VectorMatch(evidence(meaning.cosines[entry.id]), traits.label, weight)
        for at, entry in enumerate(entries)
        if entry.id in meaning.cosines
    }


def _by_words(text: str, entries: Sequence[Captured]) -> dict[int, TextMatch]:
    terms = query_terms(text)
    phrases = [_words(term.phrase) for term in terms]
    documents = [_words(entry.text) for entry in entries]
    average = sum(map(len, documents)) / max(1, len(documents))
    met: list[dict[int, int]] = [
        {at: count for at, words in enumerate(documents) if (count := _count(phrase, words))}
        for phrase in phrases
    ]
    counts = [len(one) for one in met]
    scores: dict[int, dict[int, float]] = {}
    for number, one in enumerate(met):
        rare = max(1e-6, math.log((len(documents) - counts[number] + 0.5) / (counts[number] + 0.5)))
        for at, count in one.items():
            length = 1.0 - B + B * len(documents[at]) / average
            scores.setdefault(at, {})[number] = rare * count * (K1 + 1) / (count + K1 * length)
    names = list(are_names(text, terms))
    return text_matches(scores, {}, Terms(len(documents), counts, names)) if scores else {}


def _count(phrase: tuple[str, ...], words: tuple[str, ...]) -> int:
    if len(phrase) < 2:
        return words.count(phrase[0]) if phrase else 0
    size = len(phrase)
    return sum(words[at : at + size] == phrase for at in range(len(words) - size + 1))


@lru_cache(maxsize=20_000)
def _words(text: str) -> tuple[str, ...]:
    plain = unicodedata.normalize("NFKD", index_words(text)).casefold()
    folded = "".join(char for char in plain if not unicodedata.combining(char))
    return tuple(map(_stem, _WORD.findall(folded)))


def _stem(word: str) -> str:
    """Remove an English ending, so that "nests" and "nesting" are one word."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    stem = _ENDING.sub("", word)
    stem = stem if len(stem) >= 3 else word
    return stem[:-1] if len(stem) > 3 and stem[-1] == stem[-2] else stem
