"""Embedders for tests, and the contract suite of the `Embedder` protocol.

`HashingEmbedder` needs no weights: texts that share words have similar vectors, and the same text
always has the same vector. `embedder_contract` tests any implementation, also third-party ones."""

from __future__ import annotations

import hashlib
import math
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Literal

from clawmark.embed.base import Embedder, Traits, check_vectors
from clawmark.model.errors import EmbeddingUnavailable
from clawmark.model.values import Identity, Vector

FEATURES = 4
"""Vector components per word: enough that two words hardly ever share all of them."""

PASSAGE = (
    "The billing service keeps its invoices in PostgreSQL, "
    "because the team knows that database well."
)
QUESTION = "Which database keeps the invoices of the billing service?"
OTHER = "On Sunday we walked up the mountain and had soup in the hut before the rain came."
ODD_TEXTS = (
    "",
    " \n\t ",
    "***",
    "😀 👩‍👩‍👧",
    "naïve café — “quoted”",
    "请问数据库",
    "a\x00b",
    "\ud800",
    "x" * 5_000,
    "word " * 20_000,
)


class HashingEmbedder:
    """Sums hashed word features into a unit vector of `dims` components."""

    def __init__(self, dims: int = 64) -> None:
        self._dims = dims

    @property
    def identity(self) -> Identity:
        key = hashlib.sha256(f"testing\nhashing\n{self._dims}\n{FEATURES}".encode()).hexdigest()
        return Identity(provider="testing", model="hashing", provider_key=key, dims=self._dims)

    @property
    def traits(self) -> Traits:
        return Traits("hashing (testing)", 0.0, 1.0)

    def covers(self, text: str) -> bool:
        return any(map(str.isalnum, text))

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> Vector:
        sums = [0] * self._dims
        for word in _words(text) or [b""]:
            digest = hashlib.sha256(word).digest()
            for place in range(FEATURES):
                number = int.from_bytes(digest[4 * place : 4 * place + 4], "little")
                sums[number // 2 % self._dims] += 1 if number % 2 else -1
        if not any(sums):
            sums[0] = 1
        length = math.sqrt(sum(number * number for number in sums))
        return struct.pack(f"<{self._dims}f", *[number / length for number in sums])


class UnreliableEmbedder(HashingEmbedder):
    """A hashing embedder that fails while `fault` is set.

    `down` raises, `nan` and `zero` corrupt the last vector, `short` omits the last text and cuts
    the vector of a query."""

    fault: Literal["", "down", "nan", "zero", "short"] = ""

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        sound = [HashingEmbedder.embed_query(self, text) for text in texts[:-1]]
        return sound if self.fault == "short" else [*sound, *map(self.embed_query, texts[-1:])]

    def embed_query(self, text: str) -> Vector:
        if self.fault == "down":
            raise EmbeddingUnavailable(
                "The embedder is down.", provider="testing", hint="Reset `fault`."
            )
        numbers = {"nan": math.nan, "zero": 0.0}
        if self.fault in numbers:
            return struct.pack(f"<{self._dims}f", *[numbers[self.fault]] * self._dims)
        vector = super().embed_query(text)
        return vector[:-4] if self.fault == "short" else vector


def embedder_contract(make: Callable[[], Embedder]) -> None:
    """Check the contract of `Embedder` on fresh instances; raise AssertionError if it is broken."""
    for check in CHECKS:
        check(make)


def _has_identity_and_traits(make: Callable[[], Embedder]) -> None:
    one, other = make(), make()
    must(one.identity == other.identity, "two instances have the same identity")
    must(
        one.identity.dims > 0 and bool(one.identity.provider and one.identity.model),
        "the identity is complete",
    )
    must(len(bytes.fromhex(one.identity.provider_key)) == 32, "provider_key is a SHA-256 in hex")
    must(bool(one.traits.label), "it has a label")
    floor, ceiling = one.traits.floor, one.traits.ceiling
    must(-1 <= floor < ceiling <= 1, "an unrelated text has a lower cosine than a perfect answer")


def _returns_one_unit_vector_per_text(make: Callable[[], Embedder]) -> None:
    embedder = make()
    must(embedder.embed_texts([]) == [], "no texts give no vectors")
    texts = [PASSAGE, OTHER, QUESTION, PASSAGE]
    vectors = embedder.embed_texts(texts)
    check_vectors(vectors, len(texts), embedder.identity)
    must(vectors[0] == vectors[3], "equal texts have equal vectors")
    for vector in [*vectors, embedder.embed_query(QUESTION)]:
        must(abs(_cosine(vector, vector) - 1) < 1e-3, "vectors have length one")


def _does_not_depend_on_the_batch(make: Callable[[], Embedder]) -> None:
    embedder = make()
    batch = embedder.embed_texts([OTHER, PASSAGE * 10, PASSAGE, QUESTION, "short"])
    must(
        _cosine(batch[2], embedder.embed_texts([PASSAGE])[0]) > 0.9999,
        "a text has the same vector alone and in a batch",
    )
    must(
        _cosine(batch[2], make().embed_texts([PASSAGE])[0]) > 0.9999,
        "another instance gives the same vector",
    )


def _ranks_the_answer_higher(make: Callable[[], Embedder]) -> None:
    embedder = make()
    question = embedder.embed_query(QUESTION)
    passage, other = embedder.embed_texts([PASSAGE, OTHER])
    must(embedder.covers(PASSAGE) and embedder.covers(QUESTION), "plain English is covered")
    must(
        _cosine(question, passage) > _cosine(question, other) + 0.05,
        "the answer is nearer than another text",
    )


def _accepts_odd_texts(make: Callable[[], Embedder]) -> None:
    embedder = make()
    for text in ODD_TEXTS:
        embedder.covers(text)
    check_vectors(embedder.embed_texts(list(ODD_TEXTS)), len(ODD_TEXTS), embedder.identity)
    check_vectors([embedder.embed_query(text) for text in ODD_TEXTS[:6]], 6, embedder.identity)


def _is_thread_safe(make: Callable[[], Embedder]) -> None:
    embedder = make()
    texts = [f"{PASSAGE} Number {number}." for number in range(8)]
    found: dict[str, list[Vector]] = {}
    threads = [
        threading.Thread(target=lambda name=name: found.update({name: embedder.embed_texts(texts)}))
        for name in "ab"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = make().embed_texts(texts)
    for name in "ab":
        for vector, due in zip(found[name], expected, strict=True):
            must(_cosine(vector, due) > 0.9999, "two threads at once get the same vectors as one")


CHECKS = (
    _has_identity_and_traits,
    _returns_one_unit_vector_per_text,
    _does_not_depend_on_the_batch,
    _ranks_the_answer_higher,
    _accepts_odd_texts,
    _is_thread_safe,
)


def must(holds: bool, requirement: str) -> None:
    """Raise AssertionError with the requirement of a contract that does not hold."""
    if not holds:
        raise AssertionError(f"contract broken: {requirement}")


def _cosine(one: Vector, other: Vector) -> float:
    return sum(
        a * b for a, b in zip(memoryview(one).cast("f"), memoryview(other).cast("f"), strict=True)
    )


def _words(text: str) -> list[bytes]:
    lowered = "".join(char if char.isalnum() else " " for char in text.lower())
    return [word.encode() for word in lowered.split()]
