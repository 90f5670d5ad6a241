"""How long a text is: in tokens (estimated) and in UTF-16 units (exact).

Takes strings, gives numbers and strings without lone surrogates. Real tokenizers are 60 times
slower than the whole of chunking and every model has its own, so limits are kept in an estimate:
four characters of an alphabet or one character of Chinese, Japanese or Korean are a token. Where to
cut is left to `lines` and `markdown`."""

from __future__ import annotations

# The high bytes of UTF-16 units that are not CJK. Whole blocks of 256, so a handful of rare
# neighbours (jamo extensions, some punctuation) count as CJK too: this is an estimate,
# `lines.weighted_length` is the exact count.
_NOT_CJK = bytes(
    byte
    for byte in range(256)
    if not (0x2E <= byte <= 0xA4 or 0xAC <= byte <= 0xD7 or byte in (0xF9, 0xFA))
)


def quarter_tokens(text: str) -> int:
    """The estimated length in quarters of a token: 1 for a character of an alphabet, 2 for an
    emoji, 4 for CJK.
    """
    if text.isascii():
        return len(text)
    units = text.encode("utf-16-le", "surrogatepass")
    return len(units) // 2 + 3 * len(units[1::2].translate(None, _NOT_CJK))


def estimate_tokens(text: str) -> int:
    """About how many tokens a model sees in this text; never less than one for a text that is not
    empty.
    """
    return (quarter_tokens(text) + 3) // 4


def utf16_length(text: str) -> int:
    """The length as JavaScript counts it: characters beyond U+FFFF are two units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def well_formed(text: str) -> str:
    """The text with every lone surrogate replaced by U+FFFD, so that it can be hashed, stored and
    printed.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
