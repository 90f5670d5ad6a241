"""Mask secrets in text that will be displayed, logged or captured automatically.

Every configured key, in any encoding, and everything shaped like a secret becomes
`[redacted:<kind>]`. Memory files and search results belong to the user and are not masked."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence

from clawmark.text.secrets.shapes import secrets_in

WINDOW = 64 << 10
OVERLAP = 24 << 10
"""Longer than any secret with a shape, so one that is cut at the end of a window is whole in the
next.
"""
REMOVED = "(a secret was left out)"

_SHORTEST = 6
"""Shorter values are ordinary words, such as `test`."""
_MASK = re.compile(r"\[redacted:[a-z0-9-]{1,40}\]")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class Redactor:
    """Masks the given values and everything that looks like a secret, in linear time."""

    def __init__(self, values: Sequence[str] = ()) -> None:
        forms = {form for value in values if len(value) >= _SHORTEST for form in _forms(value)}
        # Longest first, so that a form is replaced before the shorter forms it contains.
        self._forms = sorted(forms, key=lambda form: (-len(form), form))

    def clean(self, text: str) -> str:
        """Mask the secrets in a text; idempotent."""
        for form in self._forms:
            text = text.replace(form, mask("key"))
        return _masked(text, _found(text))

    def remove(self, text: str) -> str:
        """Replace secrets, and masks left by other programs, by words.

        For memory files, which must not contain masks.
        """
        return _MASK.sub(REMOVED, self.clean(text))

    def kind_in(self, text: str) -> str:
        """Return the kind of the first secret in a text, such as `github`; empty if none."""
        if any(form in text for form in self._forms):
            return "key"
        return next((kind for _, _, kind in _found(text)), "")


def mask(kind: str) -> str:
    """Return the mask for a kind of secret."""
    return f"[redacted:{kind}]"


def has_mask(text: str) -> bool:
    """Check whether a text contains a mask made by this module."""
    return _MASK.search(text) is not None


def _forms(value: str) -> Iterator[str]:
    """Yield the encodings of a value: plain, in JSON, in a URL, in base64 (also inside a longer
    text).
    """
    data = value.encode("utf-8", "surrogatepass")
    yield value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    yield from (
        escaped,
        "".join(char if char.isascii() else f"\\u{ord(char):04x}" for char in escaped),
    )
    for kept in (_UNRESERVED, _UNRESERVED | {ord("/")}):
        quoted = "".join(chr(byte) if byte in kept else f"%{byte:02X}" for byte in data)
        yield from (quoted, quoted.replace("%20", "+"), _lower_escapes(quoted))
    for before in range(3):
        # Base64 encodes three bytes at a time, so inside a longer text a key has three encodings.
        # Only the characters that depend on the key alone are known.
        encoded = b64encode(bytes(before) + data).decode("ascii").rstrip("=")
        sure = encoded[(before * 8 + 5) // 6 : (before + len(data)) * 8 // 6]
        if len(sure) >= _SHORTEST:
            yield from (sure, sure.replace("+", "-").replace("/", "_"))


def _lower_escapes(quoted: str) -> str:
    first, *rest = quoted.split("%")
    return first + "".join(f"%{part[:2].lower()}{part[2:]}" for part in rest)


def _found(text: str) -> list[tuple[int, int, str]]:
    """Return start, end and kind of each secret with a shape, in order and without overlap."""
    spans: list[tuple[int, int, str]] = []
    start = 0
    while True:
        end = min(start + WINDOW, len(text))
        spans += secrets_in(text, start, end)
        if end == len(text):
            break
        start = end - OVERLAP
    apart: list[tuple[int, int, str]] = []
    for span in sorted(spans, key=lambda span: (span[0], -span[1])):
        if apart and span[0] < apart[-1][1]:
            first, last, kind = apart[-1]
            apart[-1] = (first, max(last, span[1]), kind)
        else:
            apart.append(span)
    return apart


def _masked(text: str, spans: Sequence[tuple[int, int, str]]) -> str:
    parts = []
    at = 0
    for start, end, kind in spans:
        parts += [text[at:start], mask(kind)]
        at = end
    return "".join([*parts, text[at:]])
