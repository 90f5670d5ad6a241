"""What an index is made with: if that changes, the index is rebuilt."""

import json

from clawmark.config.schema import Settings
from clawmark.config.schema.media import Multimodal
from clawmark.embed.base import Choice

NO_EXTRA_PATHS = "e861c1d291b583b9f4bf96233b72b9e6984cc92320671a0805e1063946e4b1a1"
"""The scope hash without extra paths, precomputed: importing `hashlib` is a tenth of a sync that
finds nothing to do.
"""
DEFAULT_MULTIMODAL = Multimodal()


def index_identity(settings: Settings, choice: Choice) -> dict[str, object]:
    """Return what the index depends on, under OpenClaw's names."""
    options = settings.memory_search
    best = choice.embedders[-1].identity if choice.embedders else None
    return {
        "model": best.model if best else "fts-only",
        "provider": best.provider if best else "none",
        "providerKey": best.provider_key if best else "",
        "sources": sorted(options.sources),
        "scopeHash": scope_hash(options.extra_paths, options.multimodal),
        "chunkTokens": options.chunking.tokens,
        "chunkOverlap": options.chunking.overlap,
        "chunker": options.chunking.name,
        "vectorDims": best.dims if best else 0,
    }


def scope_hash(extra_paths: tuple[str, ...], multimodal: Multimodal = DEFAULT_MULTIMODAL) -> str:
    """Return OpenClaw's hash of what is indexed beyond the workspace."""
    if not extra_paths and multimodal == DEFAULT_MULTIMODAL:
        return NO_EXTRA_PATHS
    import hashlib

    scope = {
        "extraPaths": sorted({path.replace("\\", "/") for path in extra_paths}),
        "multimodal": {
            "enabled": multimodal.enabled,
            "modalities": list(multimodal.wanted),
            "maxFileBytes": multimodal.max_file_bytes,
        },
    }
    text = json.dumps(scope, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
