"""Normalise text for FTS5's `unicode61` tokenizer: fold letters and separate words.

The tokenizer treats a Chinese sentence as one word and breaks a Hindi word at every vowel sign. So

- Han, kana, Hangul, Thai, Lao, Khmer and Burmese letters become words of one letter, which a query
  looks for as phrases of two or three;
- vowel signs of the Indic scripts become Tangut letters, which FTS5 keeps;
- accents, optional marks and spelling variants of Arabic, Hebrew, Greek and Cyrillic are removed;
- compatibility forms (full width, half width, ligatures, decomposed Hangul) are normalised;
- symbols become spaces, because FTS5's tables are from 2012 and treat newer emoji as letters: it
  would not find `done` in `done🤖`.

Latin text is unchanged: `unicode61` folds its case and accents. `words` removes word endings."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from typing import Literal

# Blocks of 256 characters by the high byte of their UTF-16 units. Deleting bytes shows in one pass
# which blocks a text uses, ten times faster than a regular expression.
_ALL = frozenset(range(256))
# Blocks that FTS5 handles well: Latin, phonetic letters, punctuation, symbols.
_ORDINARY = bytes([0x00, 0x01, 0x02, 0x1E, 0x20, 0x21, 0x22, *range(0x24, 0x2B), 0x2C, 0x2D, 0xA7])
# All but the scripts that `words.stem` handles: Greek, Cyrillic, Arabic, the Indic scripts.
_NOT_INFLECTED = bytes(_ALL - {0x03, 0x1F, 0x04, 0x05, 0x06, 0x07, 0x08, *range(0x09, 0x0E)})
# All but the compatibility forms: squared words, ligatures, Arabic presentation forms, widths.
_NOT_COMPATIBLE = bytes(_ALL - {0x32, 0x33, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF})

HAN, KANA, HANGUL, UNSPACED, SPACED = "han", "kana", "hangul", "unspaced", ""
_RANGES = [
    (0x0E01, 0x0EE0, UNSPACED),  # Thai, Lao
    (0x1000, 0x10A0, UNSPACED),  # Burmese
    (0x1780, 0x1800, UNSPACED),  # Khmer
    (0x3005, 0x3008, HAN),
    (0x3041, 0x3097, KANA),
    (0x309D, 0x30A0, KANA),
    (0x30A1, 0x30FB, KANA),
    (0x30FC, 0x3100, KANA),
    (0x31F0, 0x3200, KANA),
    (0x3400, 0x4DC0, HAN),
    (0x4E00, 0xA000, HAN),
    (0xAC00, 0xD7A4, HANGUL),
    (0xF900, 0xFB00, HAN),
    (0x20000, 0x323B0, HAN),
]
_STARTS = [start for start, _, _ in _RANGES]

_MARK_TO_TANGUT = 0x17000 - 0x0900
_VARIANTS = {
    **dict.fromkeys(map(ord, "آأإٱ"), "ا"),
    **dict(zip(map(ord, "ىةؤئکی"), "يهويكي", strict=True)),
    **dict(zip(map(ord, "ёЁςँ"), "еЕσं", strict=True)),
    ord("ـ"): "",  # elongates an Arabic word
    0x200C: " ",  # separates Persian affixes from their word
    0x200D: "",
    ord("İ"): "i",
}
_INVISIBLE = ("\u00ad", "\u200b", "\u2060", "\ufeff")
# Symbols in ordinary blocks that FTS5 treats as letters.
_YOUNG_SIGNS = "₺₻₼₽₾₿⃀\u2066\u2067\u2068\u2069"
_EMOJI = range(0x1F000, 0x1FB00)
_NUKTAS = {0x093C, 0x09BC, 0x0A3C, 0x0ABC, 0x0B3C, 0x0CBC}


def script_of(code: int) -> str:
    """Return how a letter's script separates words; only SPACED scripts use spaces."""
    number = bisect_right(_STARTS, code) - 1
    return _RANGES[number][2] if number >= 0 and code < _RANGES[number][1] else SPACED


def is_ordinary(text: str) -> bool:
    """Whether FTS5 tokenizes this text well without help."""
    return text.isascii() or not _high_bytes(text).translate(None, _ORDINARY)


def is_inflected(text: str) -> bool:
    """Whether the text has words that `words.stem` handles."""
    return bool(_high_bytes(text).translate(None, _NOT_INFLECTED))


def fold(text: str) -> str:
    """Fold the letters of a text, so that spelling variants compare equal."""
    return _normal(text).translate(_folding)


def segment(text: str) -> str:
    """Fold the letters of a text, and separate those of scripts without spaces."""
    return _normal(text).translate(_segmenting)


def unfold(text: str) -> str:
    """Restore the vowel signs of folded text, for display."""
    return "".join(
        [chr(ord(c) - _MARK_TO_TANGUT) if "\U00017000" <= c <= "\U00018400" else c for c in text]
    )


def without_invisible(text: str) -> str:
    """Remove soft hyphens and zero-width marks, which split words invisibly."""
    for mark in _INVISIBLE:
        if mark in text:
            text = text.replace(mark, "")
    return text


def without_young_signs(text: str) -> str:
    """Replace the symbols in ordinary blocks that FTS5 treats as letters with spaces."""
    for sign in _YOUNG_SIGNS:
        if sign in text:
            text = text.replace(sign, " ")
    return text


def without_accents(word: str) -> str:
    """Remove the accents of a word in a European language."""
    if word.isascii():
        return word
    return "".join([c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c)])


def _high_bytes(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")[1::2]


def _normal(text: str) -> str:
    form: Literal["NFC", "NFKC"] = (
        "NFKC" if _high_bytes(text).translate(None, _NOT_COMPATIBLE) else "NFC"
    )
    return text if unicodedata.is_normalized(form, text) else unicodedata.normalize(form, text)


def _fold_code(code: int) -> str:
    """Return what one letter is folded to: itself, another letter, or nothing."""
    if code in _VARIANTS:
        return _VARIANTS[code]
    letter = chr(code)
    if code > 127 and len(letter.lower()) == 1:
        letter = letter.lower()
    category = unicodedata.category(letter)
    if code > 127 and (category[0] in "PSZ" or code in _EMOJI):
        return " "
    if 0x0370 <= code < 0x0400 or 0x1F00 <= code < 0x2000:
        return unicodedata.normalize("NFD", letter)[0]
    if category[0] != "M" and category != "Cf":
        return letter
    has_vowel_signs = (
        0x0900 <= code < 0x1D00 and script_of(code) != UNSPACED and code not in _NUKTAS
    )
    return chr(code + _MARK_TO_TANGUT) if has_vowel_signs else ""


class _Folding(dict[int, str]):
    """A table for `str.translate` that is filled as letters occur."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = _fold_code(code)
        return folded


class _Segmenting(dict[int, str]):
    def __missing__(self, code: int) -> str:
        folded = _folding[code]
        self[code] = folded = f" {folded} " if folded and script_of(code) != SPACED else folded
        return folded


_folding = _Folding()
_segmenting = _Segmenting()
