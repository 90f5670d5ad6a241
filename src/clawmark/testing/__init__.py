"""Parts that need no model, and contract suites, for tests of Clawmark and of code that uses it."""

from clawmark.testing.backends import backend_contract
from clawmark.testing.completers import ScriptedCompleter, completer_contract
from clawmark.testing.embedders import HashingEmbedder, UnreliableEmbedder, embedder_contract
from clawmark.testing.misbehaving import MISBEHAVIOURS, MisbehavingBackend
from clawmark.testing.plugins import plugin_contract
from clawmark.testing.rerankers import OverlapReranker, reranker_contract
from clawmark.testing.stores import index_store_contract
from clawmark.testing.team_spaces import team_spaces_contract

__all__ = [
    "MISBEHAVIOURS",
    "HashingEmbedder",
    "MisbehavingBackend",
    "OverlapReranker",
    "ScriptedCompleter",
    "UnreliableEmbedder",
    "backend_contract",
    "completer_contract",
    "embedder_contract",
    "index_store_contract",
    "plugin_contract",
    "reranker_contract",
    "team_spaces_contract",
]
