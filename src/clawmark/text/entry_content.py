"""Find the entries of a text as writes compare them, and remove what makes no difference."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from clawmark.text.untrusted.origin_labels import without_comments

_ENTRY_START = re.compile(r"(?:[-*+]|[0-9]{1,4}[.)])\s|#")
_BULLETS = re.compile(r"\A(?:(?:[-*+]|[0-9]{1,4}[.)]|#{1,6}|\[[ xX]\])\s+)+")


def normalize_entry(text: str) -> str:
    """Remove what makes no difference between entries: case, width, blanks, bullets, full stop."""
    plain = unicodedata.normalize("NFKC", _BULLETS.sub("", text.strip())).casefold()
    return " ".join(plain.split()).rstrip(".!;,\u3002")


def split_entries(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the list items and paragraphs of a file with their first and last line."""
    entry: list[str] = []
    first = 0
    for number, line in enumerate([*without_comments(text).split("\n"), ""], 1):
        if entry and (not line.strip() or _ENTRY_START.match(line)):
            yield first, number - 1, "\n".join(entry)
            entry = []
        if line.strip():
            first = first if entry else number
            entry.append(line)
