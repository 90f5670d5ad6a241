"""Which script a text is written in, as far as an embedder has to know; text in, yes or no out."""

from __future__ import annotations


def is_mostly_latin(text: str) -> bool:
    """Whether the text has letters and at least half of them are Latin; digits and punctuation do not count."""
    if text.isascii():
        return text.lower() != text.upper()
    letters = latin = 0
    for char in text:
        if char.isalpha():
            letters += 1
            latin += char <= "\u024f" or "\u1e00" <= char <= "\u1eff"
    return latin * 2 >= letters > 0
