"""What cannot be seen, made visible: control, direction, tag and zero-width characters as
`\\u{200b}`.

In: any text. Out: the same text on the same lines, with nothing in it that a reader would miss and
a model would not; and the way back, to exactly what it was. A backslash is touched only where it
would look like an escape. Line feeds and tabs stay. What the text says is left to others."""

from __future__ import annotations

import re

_INVISIBLE = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad"  # controls, and the hyphen that shows only at a line's end
    r"\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # joiners, fillers, marks without a shape
    r"\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"  # zero width, line ends, direction
    r"\ud800-\udfff"  # halves of characters: bytes of a file name that was not UTF-8
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # tags, selectors beyond the usual sixteen
)
_JOINERS = "\u200c\u200d"
_ESCAPABLE = re.compile(rf"[{_INVISIBLE}]|\\(?=u\{{)")
_ESCAPED = re.compile(r"\\u\{([0-9a-f]{1,6})\}")


def escape(text: str, *, joiners: bool = True) -> str:
    """The text with everything invisible written out; without `joiners`, those of emoji and Persian
    words stay.
    """

    def written(found: re.Match[str]) -> str:
        return found[0] if found[0] in _JOINERS and not joiners else rf"\u{{{ord(found[0]):x}}}"

    return _ESCAPABLE.sub(written, text)


def unescape(text: str) -> str:
    """The text that `escape` was given."""
    return _ESCAPED.sub(lambda found: _character(found), text)


def has_hidden(text: str) -> bool:
    """Whether a text holds something invisible that no ordinary note needs: joiners and soft
    hyphens are ordinary.
    """
    return any(
        found[0] not in ("\\", "\xad", "\r", *_JOINERS) for found in _ESCAPABLE.finditer(text)
    )


def without_hidden(text: str) -> str:
    """The text without anything invisible."""
    return _ESCAPABLE.sub(lambda found: found[0] if found[0] == "\\" else "", text)


def _character(found: re.Match[str]) -> str:
    code = int(found[1], 16)
    return chr(code) if code <= 0x10FFFF else found[0]
