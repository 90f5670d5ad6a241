"""Escape control, direction, tag and zero-width characters as `\\u{200b}`, and back.

A model sees such characters and a person does not. Line feeds and tabs are kept; a backslash is
escaped only where it would look like the start of an escape."""

from __future__ import annotations

import re

_INVISIBLE = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad"  # controls, soft hyphen
    r"\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # joiners, fillers, invisible marks
    # zero width, line ends, direction
    r"\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    r"\ud800-\udfff"  # lone surrogates: undecodable bytes of file names
    # tags, variation selectors beyond the first sixteen
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_JOINERS = "\u200c\u200d"
_ESCAPABLE = re.compile(rf"[{_INVISIBLE}]|\\(?=u\{{)")
_ESCAPED = re.compile(r"\\u\{([0-9a-f]{1,6})\}")


def escape(text: str, *, joiners: bool = True) -> str:
    """Escape all invisible characters; without `joiners`, those of emoji and Persian are kept."""

    def written(found: re.Match[str]) -> str:
        return found[0] if found[0] in _JOINERS and not joiners else rf"\u{{{ord(found[0]):x}}}"

    return _ESCAPABLE.sub(written, text)


def unescape(text: str) -> str:
    """Reverse `escape`."""
    return _ESCAPED.sub(_character, text)


def has_hidden(text: str) -> bool:
    """Whether a text has invisible characters other than joiners, soft hyphens and returns."""
    return any(
        found[0] not in ("\\", "\xad", "\r", *_JOINERS) for found in _ESCAPABLE.finditer(text)
    )


def without_hidden(text: str) -> str:
    """Remove all invisible characters."""
    return _ESCAPABLE.sub(lambda found: found[0] if found[0] == "\\" else "", text)


def _character(found: re.Match[str]) -> str:
    code = int(found[1], 16)
    return chr(code) if code <= 0x10FFFF else found[0]
