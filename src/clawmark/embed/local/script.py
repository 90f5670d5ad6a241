"""Which script a text is written in, as far as an embedder has to know; text in, yes or no out."""

from __future__ import annotations

import re

_OTHER_LETTERS = r"[^\W\d_\x00-\u024f\u1e00-\u1eff]"


def is_mostly_latin(text: str) -> bool:
    """Whether the text has letters and at least half of them are Latin; digits and punctuation do
    not count.
    """
    others = 0 if text.isascii() else len(re.findall(_OTHER_LETTERS, text))
    if not others:
        return any(map(str.isalpha, text))  # which ends at the first one
    return others * 2 <= sum(map(str.isalpha, text))
