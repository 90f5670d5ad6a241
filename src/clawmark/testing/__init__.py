"""What tests of Clawmark, and of code that uses it, need: an embedder without weights, and contract
suites.
"""

from clawmark.testing.embedders import HashingEmbedder, UnreliableEmbedder, embedder_contract
from clawmark.testing.rerankers import OverlapReranker, reranker_contract
from clawmark.testing.stores import index_store_contract

__all__ = [
    "HashingEmbedder",
    "OverlapReranker",
    "UnreliableEmbedder",
    "embedder_contract",
    "index_store_contract",
    "reranker_contract",
]
