"""What of the hostile workspace is handed to an embedder: its words, and none of its megabytes
without any.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import hostile
import pytest

from clawmark import Memory
from clawmark.model.values import Vector
from clawmark.testing import HashingEmbedder

pytestmark = hostile.needs_maker

MOST_TEXTS = 500
"""Of about 3,000 different chunks.

The rest are repeated characters, encoded data and numbered lines.
"""


class CountingEmbedder(HashingEmbedder):
    """Keeps the texts it is asked to embed."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        self.texts += texts
        return super().embed_texts(texts)


@pytest.mark.parametrize("seed", [1, 2])
def test_only_what_has_words_is_embedded_and_nothing_stays_due(tmp_path: Path, seed: int) -> None:
    made, embedder = hostile.make(tmp_path / "made", seed), CountingEmbedder()
    try:
        with Memory.open(
            made / "workspace", state_dir=tmp_path / "state", embedder=embedder
        ) as memory:
            memory.sync()
            assert memory.status().due_vectors == 0
            assert 100 < len(embedder.texts) < MOST_TEXTS
            (hit, *_) = memory.search("item 50427", min_score=0.0).hits
            assert hit.path == "memory/lines/manylines.md"
    finally:
        hostile.remove(made)
