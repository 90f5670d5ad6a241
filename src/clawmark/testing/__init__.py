"""Test helpers for Clawmark and code that uses it: fake embedders and contract suites."""

from clawmark.testing.embedders import HashingEmbedder, UnreliableEmbedder, embedder_contract
from clawmark.testing.rerankers import OverlapReranker, reranker_contract

__all__ = [
    "HashingEmbedder",
    "OverlapReranker",
    "UnreliableEmbedder",
    "embedder_contract",
    "reranker_contract",
]
