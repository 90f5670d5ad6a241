"""A passage as the keyword index gets it.

Takes a text, gives text that FTS5 cuts into the words people look for: unchanged when it is Latin,
else folded, cut and stemmed. `query` sends its terms through the same door, so the two sides always
agree."""

from __future__ import annotations

import re

from clawmark.text.keywords.scripts import (
    is_inflected,
    is_ordinary,
    segment,
    without_invisible,
    without_young_signs,
)

_FOREIGN = r"[^\W_\x00-\x7f]+"
_MOST_STEMS = 50_000
_stems: dict[str, str] = {}


def index_words(text: str) -> str:
    """The words of a passage, for the keyword index; the text itself when FTS5 needs no help with
    it.
    """
    if text.isascii():
        return text
    text = without_young_signs(without_invisible(text))
    if is_ordinary(text):
        return text
    text = segment(text)
    return re.sub(_FOREIGN, _stemmed, text) if is_inflected(text) else text


def _stemmed(found: re.Match[str]) -> str:
    word = found[0]
    known = _stems.get(word)
    if known is None:
        from clawmark.text.keywords.stem import stem

        if len(_stems) >= _MOST_STEMS:
            _stems.clear()
        known = _stems[word] = stem(word)
    return known
