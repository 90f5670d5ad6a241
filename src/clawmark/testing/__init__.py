"""What tests of Clawmark, and of code that uses it, need: an embedder without weights, and contract suites."""

from clawmark.testing.embedders import HashingEmbedder, UnreliableEmbedder, embedder_contract

__all__ = ["HashingEmbedder", "UnreliableEmbedder", "embedder_contract"]
