"""Measure text in estimated tokens and in UTF-16 units.

Real tokenizers are 60 times slower than all of chunking, and every model has its own. The estimate
counts four characters of an alphabet, or one character of Chinese, Japanese or Korean, as a token.
"""

from __future__ import annotations

# The high bytes of UTF-16 units that are not CJK. Whole blocks of 256, so a few rare neighbours
# (jamo extensions, some punctuation) count as CJK; `lines.weighted_length` counts exactly.
_NOT_CJK = bytes(
    byte
    for byte in range(256)
    if not (0x2E <= byte <= 0xA4 or 0xAC <= byte <= 0xD7 or byte in (0xF9, 0xFA))
)


def quarter_tokens(text: str) -> int:
    """Estimate quarter tokens: 1 for a character of an alphabet, 2 for an emoji, 4 for CJK."""
    if text.isascii():
        return len(text)
    units = text.encode("utf-16-le", "surrogatepass")
    return len(units) // 2 + 3 * len(units[1::2].translate(None, _NOT_CJK))


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text, rounded up."""
    return (quarter_tokens(text) + 3) // 4


def utf16_length(text: str) -> int:
    """Return the length as JavaScript counts it: characters above U+FFFF are two units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def well_formed(text: str) -> str:
    """Replace every lone surrogate with U+FFFD, so that the text can be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
