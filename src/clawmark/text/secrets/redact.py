"""Takes secrets out of a text that will be seen: a log line, an error, what is captured without
asking.

In: the keys that are configured, and a text. Out: the text with `[redacted:<kind>]` in place of
every key, in whichever way it was encoded, and of everything that has the shape of a secret. Memory
files and search results are the user's own and are never sent through here. The shapes are in
`shapes`."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence

from clawmark.text.secrets.shapes import secrets_in

WINDOW = 64 << 10
OVERLAP = 24 << 10
"""Longer than any secret with a shape: one that is cut by the end of a window is whole in the next.
"""

_SHORTEST = 6
"""Shorter values are words: masking every `test` would hide the text and protect nothing."""
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class Redactor:
    """Masks the given values, then everything that looks like a secret; the time grows with the
    text and no faster.
    """

    def __init__(self, values: Sequence[str] = ()) -> None:
        forms = {form for value in values if len(value) >= _SHORTEST for form in _forms(value)}
        # The longest first: a form that holds another one must not be cut in two by it.
        self._forms = sorted(forms, key=lambda form: (-len(form), form))

    def clean(self, text: str) -> str:
        """The text without its secrets; cleaning it again changes nothing."""
        for form in self._forms:
            text = text.replace(form, mask("key"))
        return _masked(text, _found(text))

    def kind_in(self, text: str) -> str:
        """The kind of the first secret in a text, as `key` or `github`; empty when there is none."""
        if any(form in text for form in self._forms):
            return "key"
        return next((kind for _, _, kind in _found(text)), "")


def mask(kind: str) -> str:
    """What stands in place of a secret."""
    return f"[redacted:{kind}]"


def has_mask(text: str) -> bool:
    """Whether a text holds such a mask: it must not be kept in place of what it stands for."""
    return replace_masks(text, "") != text


def replace_masks(text: str, words: str) -> str:
    """The text with some words in place of every mask."""
    return re.sub(r"\[redacted:[a-z0-9-]{1,40}\]", words, text)


def _forms(value: str) -> Iterator[str]:
    """A value in every way it may be met: as it is, in a URL, in JSON, in base64 alone or inside
    something else.
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
        # Base64 takes three bytes at a time: inside a longer text the same key has three faces, and
        # only the characters that come from the key alone are known.
        encoded = b64encode(bytes(before) + data).decode("ascii").rstrip("=")
        sure = encoded[(before * 8 + 5) // 6 : (before + len(data)) * 8 // 6]
        if len(sure) >= _SHORTEST:
            yield from (sure, sure.replace("+", "-").replace("/", "_"))


def _lower_escapes(quoted: str) -> str:
    first, *rest = quoted.split("%")
    return first + "".join(f"%{part[:2].lower()}{part[2:]}" for part in rest)


def _found(text: str) -> list[tuple[int, int, str]]:
    """Where the secrets with a shape are: start, end and kind, in order and apart from each other."""
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
