"""Every embedder we ship keeps the same promises."""

from __future__ import annotations

from typing import Literal

import pytest

from clawmark.embed.base import check_vectors
from clawmark.embed.local.static import StaticEmbedder
from clawmark.embed.local.transformer import TransformerEmbedder
from clawmark.embed.local.weights import has_numpy
from clawmark.model.errors import EmbeddingError
from clawmark.model.values import Vector
from clawmark.testing import HashingEmbedder, UnreliableEmbedder, embedder_contract


def test_the_hashing_embedder_passes_the_contract() -> None:
    embedder_contract(HashingEmbedder)
    embedder_contract(lambda: HashingEmbedder(dims=256))


def test_the_static_embedder_passes_the_contract() -> None:
    embedder_contract(StaticEmbedder)


@pytest.mark.skipif(not has_numpy(), reason="numpy is not installed")
def test_the_local_model_passes_the_contract() -> None:
    embedder_contract(TransformerEmbedder)


@pytest.mark.parametrize("fault", ["down", "nan", "zero", "short"])
def test_the_check_finds_every_fault_of_an_embedder(
    fault: Literal["down", "nan", "zero", "short"],
) -> None:
    embedder = UnreliableEmbedder()
    embedder.fault = fault
    with pytest.raises(EmbeddingError):
        check_vectors(embedder.embed_texts(["one", "two"]), 2, embedder.identity)
    with pytest.raises(EmbeddingError):
        check_vectors([embedder.embed_query("one")], 1, embedder.identity)
    embedder.fault = ""
    embedder_contract(lambda: embedder)


class Forgetful(HashingEmbedder):
    """Gives one vector fewer than it should."""

    def embed_texts(self, texts: object) -> list[Vector]:
        assert isinstance(texts, list)
        return super().embed_texts(texts[1:])


class Indifferent(HashingEmbedder):
    """Gives every text the same vector."""

    def embed_query(self, text: str) -> Vector:
        return super().embed_query("anything")


def test_the_contract_catches_a_missing_vector() -> None:
    with pytest.raises(Exception, match="vectors for 4 texts"):
        embedder_contract(Forgetful)


def test_the_contract_catches_vectors_without_meaning() -> None:
    with pytest.raises(AssertionError, match="nearer"):
        embedder_contract(Indifferent)


def test_vectors_of_the_hashing_embedder_never_change() -> None:
    numbers = memoryview(HashingEmbedder(dims=16).embed_query("PostgreSQL for billing")).cast("f")
    assert [round(number, 4) for number in numbers] == HASHED


HASHED = [
    0.2887,
    0.0,
    -0.2887,
    -0.2887,
    0.0,
    0.0,
    -0.5774,
    0.0,
    -0.5774,
    -0.2887,
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
]
