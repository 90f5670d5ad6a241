"""Build the reranking step of a search from the settings."""

from __future__ import annotations

import os

from clawmark.config.paths import Places
from clawmark.config.schema import MemorySearch
from clawmark.embed.rerank.base import Unusable, make_reranker
from clawmark.engine.search.rerank import RerankStep
from clawmark.model.errors import RerankError


def rerank_step(places: Places, search: MemorySearch) -> RerankStep:
    """Return the configured reranker; if it cannot be made, every answer reports that."""
    options = search.query.rerank
    try:
        proxy = search.remote.proxy
        reranker = make_reranker(options, os.environ, places.state_dir, proxy=proxy)
    except RerankError as error:
        reranker = Unusable(options.provider, error)
    return RerankStep(reranker, options.top_k, options.timeout_ms / 1000)
