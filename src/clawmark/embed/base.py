"""The `Embedder` protocol, its values, and the check of every vector before it is stored."""

import os
import re
from collections.abc import Callable, Sequence
from math import hypot, isfinite
from typing import Any, NamedTuple, Protocol

from clawmark.model.errors import EmbeddingRejected
from clawmark.model.values import Degraded, Identity, Vector

WORKERS = 4
"""More threads would make a laptop hard to use while it indexes."""
_FEW = 4


class Traits(NamedTuple):
    """Properties of an embedder besides its identity."""

    label: str
    """The name shown to users: `granite-30m (local)`."""
    floor: float
    ceiling: float
    """The cosines of unrelated texts and of a perfect answer, which become the scores 0 and 1."""
    instant: bool = False
    """Takes microseconds per sentence: may be used while a search waits."""
    most_texts: int = 1024
    """The most texts in one call of `embed_texts`."""
    remote: bool = False
    """Costs money: new passages are sent by an explicit sync, never while a search waits."""
    at_once: int = 1
    """How many calls may run in parallel."""
    media: bool = False
    """Has a method `embed_media`, which returns one vector per `MediaFile`."""


class Embedder(Protocol):
    """Turns texts into unit vectors. Creating one is cheap; the first call loads the model."""

    @property
    def identity(self) -> Identity:
        """Known without loading the weights."""

    @property
    def traits(self) -> Traits:
        """Known without loading the weights."""

    def covers(self, text: str) -> bool:
        """Whether the model knows the language of this text; other texts get no vector."""

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        """One vector per text, in order; raises EmbeddingError."""

    def embed_query(self, text: str) -> Vector:
        """The vector of a question; raises EmbeddingError."""


class Choice(NamedTuple):
    """The chosen embedders, the instant one first and the best one last; none for keywords only."""

    embedders: tuple[Embedder, ...]
    reason: str
    degraded: Degraded | None
    fallbacks: tuple[Embedder, ...] = ()
    """Used in this order when the best one fails."""
    instead_of: str = ""
    """The configured provider, if it cannot be used and these replace it."""


def is_mostly_latin(text: str) -> bool:
    """Whether the text has letters and at least half of them are Latin; digits and punctuation do
    not count.
    """
    others = 0 if text.isascii() else len(re.findall(r"[^\W\d_\x00-\u024f\u1e00-\u1eff]", text))
    if not others:
        return any(map(str.isalpha, text))
    return others * 2 <= sum(map(str.isalpha, text))


def embed_each(embed: Callable[[str], Vector], texts: Sequence[str]) -> list[Vector]:
    """Embed texts one by one on several threads, with at least four of them."""
    if len(texts) < _FEW:
        return [embed(text) for text in texts]
    # Imported late: it costs 14 ms, which a search that embeds one question does not need.
    from concurrent.futures import ThreadPoolExecutor

    # Longest first, so that the workers end at about the same time.
    order = sorted(range(len(texts)), key=lambda number: -len(texts[number]))
    with ThreadPoolExecutor(min(WORKERS, os.cpu_count() or 1)) as pool:
        results = pool.map(embed, [texts[number] for number in order])
        vectors = dict(zip(order, results, strict=True))
    return [vectors[number] for number in range(len(texts))]


def check_vectors(vectors: Sequence[Vector], expected: int, identity: Identity) -> None:
    """Raise EmbeddingRejected for a wrong count or size, numbers that are not finite, or a zero
    vector.
    """
    hint = "It is not used until its answers are right; keywords and other vectors answer."
    where = {"provider": identity.provider, "model": identity.model, "hint": hint}
    if len(vectors) != expected:
        raise EmbeddingRejected(
            f"{identity.model} gave {len(vectors)} vectors for {expected} texts.", **where
        )
    from simsimd import dot  # Imported late: a keyword search does not need it.

    for number, vector in enumerate(vectors):
        if len(vector) != identity.dims * 4:
            raise EmbeddingRejected(
                f"{identity.model} gave a vector of {len(vector) // 4} numbers instead of "
                f"{identity.dims}.",
                **where,
            )
        numbers: Any = memoryview(vector).cast("f")
        # Nearly every vector has a length near one; only the others need the slow, exact check.
        square: Any = dot(numbers, numbers) if numbers else 0.0
        if not 0.25 < square < 4.0 and not _has_length(numbers):
            raise EmbeddingRejected(
                f"{identity.model} gave an unusable vector for text {number + 1}.", **where
            )


def _has_length(numbers: Sequence[float]) -> bool:
    length = hypot(*numbers)
    return isfinite(length) and length >= 1e-6
