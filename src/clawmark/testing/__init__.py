"""What tests of Clawmark, and of code that uses it, need: an embedder without weights, and contract
suites.
"""

from clawmark.testing.backends import backend_contract
from clawmark.testing.embedders import HashingEmbedder, UnreliableEmbedder, embedder_contract
from clawmark.testing.rerankers import OverlapReranker, reranker_contract

__all__ = [
    "HashingEmbedder",
    "OverlapReranker",
    "UnreliableEmbedder",
    "backend_contract",
    "embedder_contract",
    "reranker_contract",
]
