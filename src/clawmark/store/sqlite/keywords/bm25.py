"""BM25 as FTS5 computes it, for rows that were chosen before.

FTS5's own `bm25()` reads all rows of every phrase to learn how rare it is, which takes longer than
the search itself if a phrase is common. The function here is given the rarities. It returns the
same numbers."""

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import apsw

TEXT_WEIGHT, CONTEXT_WEIGHT, ASKED_WEIGHT = 1.0, 1.0, 0.3
"""The weight of a match in a chunk's text, in its headings or date, and in an unanswered question.
"""
K1, B = 1.2, 0.75
MOST_TF = K1 + 1.0
"""The most that BM25 gives for a phrase, in units of its rarity."""
BUILT_IN = f"-bm25({{0}}, {TEXT_WEIGHT}, {CONTEXT_WEIGHT}, {ASKED_WEIGHT})"


def rarity(count: int, total: int) -> float:
    """Return what BM25 multiplies with for a phrase that `count` of `total` rows have."""
    return max(1e-6, math.log((total - count + 0.5) / (count + 0.5))) if total >= count else 1e-6


def weights(first: int, rarities: Sequence[float]) -> str:
    """Return the argument of the functions here: the rarities of the phrases from `first` on.

    Phrases before that choose rows but do not count."""
    return json.dumps([first, *rarities])


def keyword_score(api: "apsw.FTS5ExtensionApi", given: str) -> float:
    """Return the BM25 score of the current row, as an auxiliary function of FTS5."""
    return sum(_phrase_scores(api, given))


def phrase_scores(api: "apsw.FTS5ExtensionApi", given: str) -> str:
    """Return what each phrase adds to the BM25 score of the current row, as a JSON list."""
    return json.dumps(_phrase_scores(api, given))


def _phrase_scores(api: "apsw.FTS5ExtensionApi", given: str) -> list[float]:
    known = api.aux_data
    if known is None:
        first, *rarities = json.loads(given)
        mean_length = api.column_total_size(-1) / api.row_count
        known = api.aux_data = (list(enumerate(rarities, first)), mean_length)
    phrases, mean_length = known
    by_length = K1 * (1 - B + B * api.column_size(-1) / mean_length)
    scores = []
    for number, worth in phrases:
        text, context, asked = map(len, api.phrase_locations(number))
        often = TEXT_WEIGHT * text + CONTEXT_WEIGHT * context + ASKED_WEIGHT * asked
        scores.append(worth * ((often * MOST_TF) / (often + by_length)) if often else 0.0)
    return scores
