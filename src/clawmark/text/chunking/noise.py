"""Whether a passage is text with a meaning, or only characters: encoded data, numbered lines, one
word again and again.

Takes a passage, gives yes or no. Embedding is the expensive part of indexing, and the vector of a
passage without words says nothing. Keywords find such a passage all the same."""

from __future__ import annotations

import re

SHORT = 200
"""Characters. Shorter passages are cheap to embed, and a note of one word may matter."""
MIN_WORDS = 4
"""Different words that a longer passage must have."""

_TOKEN = re.compile(r"[^\W_]+")
_ENCODED_RUN = re.compile(r"[A-Za-z0-9+/=_-]{50,}")
_HEX = frozenset("0123456789abcdefABCDEF")


def has_meaning(passage: str) -> bool:
    """Whether a passage has enough different words to be worth a vector."""
    if len(passage) < SHORT:
        return True
    words = set[str]()
    for token in _TOKEN.finditer(_ENCODED_RUN.sub(_without_encoded, passage)):
        words.update(_words(token[0]))
        if len(words) >= MIN_WORDS:
            return True
    return False


def _words(token: str) -> list[str]:
    """The words of a token: none if it has digits; pairs of characters beyond ASCII, where there
    may be no spaces.
    """
    if len(token) < 2 or not token.isalpha():
        return []
    if token.isascii():
        return [token.lower()]
    return [token[start : start + 2] for start in range(len(token) - 1)]


def _without_encoded(run: re.Match[str]) -> str:
    """A space for a long run that is encoded data; the run itself if it could be words, such as a
    part of an address.
    """
    characters = set(run[0])
    is_mixed = (
        any(map(str.isupper, characters))
        and any(map(str.islower, characters))
        and any(map(str.isdigit, characters))
    )
    return " " if is_mixed or characters <= _HEX else run[0]
