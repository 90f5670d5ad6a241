"""What tests of Clawmark, and of code that uses it, need: an embedder without weights, and contract suites."""

from clawmark.testing.embedders import HashingEmbedder, embedder_contract

__all__ = ["HashingEmbedder", "embedder_contract"]
