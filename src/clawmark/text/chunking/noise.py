"""Recognise passages that are not worth embedding: encoded data, numbered lines, a repeated word.

Embedding is the expensive part of indexing. Keyword search finds such passages all the same."""

from __future__ import annotations

import re

SHORT = 200
"""Characters. Shorter passages are always embedded."""
MIN_WORDS = 4
"""Distinct words that a longer passage must have."""

ENCODED = 50
"""Characters that encoded data has at least, without a space."""

FIRST_PIECES = 12
"""The beginning of a passage, without spaces, that is looked at first: prose needs no more."""

_PIECE = re.compile(r"\S+")
_TOKEN = re.compile(r"[^\W_]+")
_ENCODED_RUN = re.compile(rf"[A-Za-z0-9+/=_-]{{{ENCODED},}}")
_HEX = frozenset("0123456789abcdefABCDEF")


def has_meaning(passage: str) -> bool:
    """Whether a passage has enough distinct words to be worth a vector."""
    if len(passage) < SHORT or _begins_with_words(passage):
        return True
    words = set[str]()
    for found in _PIECE.finditer(passage):
        piece = found[0]
        if len(piece) >= ENCODED:
            piece = _ENCODED_RUN.sub(_without_encoded, piece)
        for token in _TOKEN.findall(piece):
            words.update(_words(token))
        if len(words) >= MIN_WORDS:
            return True
    return False


def _begins_with_words(passage: str) -> bool:
    """Whether the first pieces alone have enough words; a quick check that most notes pass."""
    pieces = passage.split(maxsplit=FIRST_PIECES)[:FIRST_PIECES]
    plain = {
        piece.lower()
        for piece in pieces
        if piece.isalpha() and piece.isascii() and 2 <= len(piece) < ENCODED
    }
    return len(plain) >= MIN_WORDS


def _words(token: str) -> list[str]:
    """Return the words of a token: none if it has digits, character pairs beyond ASCII."""
    if len(token) < 2 or not token.isalpha():
        return []
    if token.isascii():
        return [token.lower()]
    return [token[start : start + 2] for start in range(len(token) - 1)]


def _without_encoded(run: re.Match[str]) -> str:
    """Replace a long run with a space if it looks like encoded data."""
    characters = set(run[0])
    is_mixed = (
        any(map(str.isupper, characters))
        and any(map(str.islower, characters))
        and any(map(str.isdigit, characters))
    )
    return " " if is_mixed or characters <= _HEX else run[0]
