"""Evidence of words in memories of a few passages, where FTS5's own rarities are nearly 0."""

from __future__ import annotations

import pytest

from clawmark.engine.search.scoring import Terms, text_matches


@pytest.mark.parametrize("total", [1, 2, 3])
def test_one_word_that_is_not_there_does_not_hide_the_others_in_a_small_memory(total: int) -> None:
    """FTS5 scores a term that every passage has with 0.000001 times its frequency."""
    met = {0: dict.fromkeys(range(13), 1e-6)}
    words = Terms(total=total, counts=[total] * 13 + [0], names=[False] * 14)
    assert text_matches(met, {}, words)[0].text > 0.2


def test_words_that_every_passage_has_say_little_in_a_large_memory() -> None:
    met = {0: dict.fromkeys(range(13), 1e-6)}
    words = Terms(total=10_000, counts=[10_000] * 13 + [0], names=[False] * 14)
    assert text_matches(met, {}, words)[0].text < 0.01
