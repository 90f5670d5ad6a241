"""Decide what text of a chunk is embedded, for sync, cost estimates and `verify` alike."""

from __future__ import annotations

from clawmark.embed.base import Embedder
from clawmark.text.chunking.noise import has_meaning
from clawmark.text.untrusted.origin_labels import without_comments


def embeddable(embedder: Embedder, chunk: str) -> str | None:
    """The text to embed; None if it has no words, or none in a language the model knows."""
    text = without_comments(chunk)
    return text if has_meaning(text) and embedder.covers(text) else None
