"""What every embedder offers, and the check every vector passes before it is stored."""

import re
from collections.abc import Callable, Mapping, Sequence
from math import hypot, isfinite
from typing import Any, NamedTuple, Protocol

from clawmark.config.schema import Remote
from clawmark.model.errors import EmbeddingRejected
from clawmark.model.values import Degraded, Identity, Vector


class Traits(NamedTuple):
    """What the rest of Clawmark wants to know about an embedder beyond its identity."""

    label: str
    """How a person calls it: `granite-30m (local)`."""
    floor: float
    ceiling: float
    """The cosine of unrelated texts and of a perfect answer: they become 0 and 1 in a score."""
    instant: bool = False
    """Costs microseconds a sentence: may be used while a search waits."""
    most_texts: int = 1024
    """How many texts one call of `embed_texts` takes at the most."""
    remote: bool = False
    """Costs money and somebody else's time: new passages are sent by an explicit sync, never while
    a search waits.
    """
    at_once: int = 1
    """How many calls may run side by side."""


class Embedder(Protocol):
    """Texts in, unit vectors out.

    Loading is lazy: making one costs nothing, the first embed loads.
    """

    @property
    def identity(self) -> Identity:
        """Known without loading the weights."""

    @property
    def traits(self) -> Traits:
        """Known without loading the weights."""

    def covers(self, text: str) -> bool:
        """Whether the model knows the language of this text; a text it does not cover gets no
        vector.
        """

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        """One vector per text, in order; raises EmbeddingError."""

    def embed_query(self, text: str) -> Vector:
        """The vector of a question; raises EmbeddingError."""


class EmbeddingOptions(NamedTuple):
    """What the configuration says about embedding."""

    provider: str = "auto"
    model: str = ""
    dims: int = 0
    local_model_path: str = ""
    fallback: tuple[str, ...] = ()
    remote: Remote = Remote()
    entries: Mapping[str, Mapping[str, object]] = {}
    """OpenClaw's `models.providers`: services by name."""


class EmbedderContext(NamedTuple):
    """What an embedder may need besides its options."""

    environ: Mapping[str, str]
    state_dir: str
    """Where the ledger and the circuit breakers are kept."""
    batch_dir: str
    dims_of: Callable[[str, str, str], int]
    """(provider, model, provider key) -> the size of the vectors the index already has, or 0."""


class Choice(NamedTuple):
    """What was chosen; `embedders` has the instant one first and the best one last, and is empty
    for keywords only.
    """

    embedders: tuple[Embedder, ...]
    reason: str
    degraded: Degraded | None
    fallbacks: tuple[Embedder, ...] = ()
    """What may stand in when the best one fails, in this order."""
    instead_of: str = ""
    """The provider that was wanted and cannot be used, in whose place these are."""


def is_mostly_latin(text: str) -> bool:
    """Whether the text has letters and at least half of them are Latin; digits and punctuation do
    not count.
    """
    others = 0 if text.isascii() else len(re.findall(r"[^\W\d_\x00-\u024f\u1e00-\u1eff]", text))
    if not others:
        return any(map(str.isalpha, text))  # which ends at the first one
    return others * 2 <= sum(map(str.isalpha, text))


def check_vectors(vectors: Sequence[Vector], expected: int, identity: Identity) -> None:
    """Refuse what must never be stored: a wrong count, a wrong size, numbers that are not finite, a
    zero vector.
    """
    hint = (
        "It is not used until its answers are right; keywords and other vectors answer meanwhile."
    )
    where = {"provider": identity.provider, "model": identity.model, "hint": hint}
    if len(vectors) != expected:
        raise EmbeddingRejected(
            f"{identity.model} gave {len(vectors)} vectors for {expected} texts.", **where
        )
    from simsimd import dot

    for number, vector in enumerate(vectors):
        if len(vector) != identity.dims * 4:
            raise EmbeddingRejected(
                f"{identity.model} gave a vector of {len(vector) // 4} numbers where "
                f"{identity.dims} were due.",
                **where,
            )
        numbers: Any = memoryview(vector).cast("f")
        # Nearly every vector has a length near one; only the others are worth the slow and certain
        # way.
        square: Any = dot(numbers, numbers) if numbers else 0.0
        if not 0.25 < square < 4.0 and not _has_length(numbers):
            raise EmbeddingRejected(
                f"{identity.model} gave an unusable vector for text {number + 1}.", **where
            )


def _has_length(numbers: Sequence[float]) -> bool:
    length = hypot(*numbers)
    return isfinite(length) and length >= 1e-6
