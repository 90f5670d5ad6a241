"""What of a chunk is embedded, if anything; asked alike by sync, by the estimate of costs and by
`verify`.
"""

from __future__ import annotations

from clawmark.embed.base import Embedder
from clawmark.text.chunking.noise import has_meaning
from clawmark.text.untrusted.origin_labels import without_comments


def embeddable(embedder: Embedder, chunk: str) -> str | None:
    """The text to embed; None for a chunk that gets no vector: it has no words, or the model does
    not know them.
    """
    text = without_comments(chunk)
    return text if has_meaning(text) and embedder.covers(text) else None
