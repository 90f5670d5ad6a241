"""The log of a day in a space, as Markdown: one list item for each entry, in order of time.

# 2026-11-18

- 14:05 ada: We chose PostgreSQL for billing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from clawmark.model.errors import SpaceInputError
from clawmark.text.chunking.tokens import well_formed
from clawmark.workspace.daily import daily_header, format_entry

LONGEST_ENTRY = 32_000
"""Characters of one entry."""
LONGEST_KEY = 200
FIRST_LINE = 3
"""The line of the first entry, after the heading."""
_BULLETS = re.compile(r"\A\s*(?:[-*](?:\s+|\Z))*")
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_LIKE_AN_ENTRY = re.compile(r"(?:[-*+]|[0-9]+[.)])?[^\w>]*[0-9]{1,2}:[0-9]{2}\s+[\w.-]+\s*:")
"""Matches the beginning of a line that could be taken for an entry with its author."""


def check_entry(text: str) -> str:
    """Return the text of an entry as it is stored; raise SpaceInputError if it cannot be.

    Every kind of line end becomes `\\n`, so that no line can pass for another entry."""
    plain = _clean(text)
    if not plain:
        raise SpaceInputError(
            "There is nothing to write: the text is empty.",
            argument="text",
            hint="Say what should be remembered.",
        )
    if len(plain) > LONGEST_ENTRY:
        raise SpaceInputError(
            f"The text has {len(plain):,} characters; an entry may have {LONGEST_ENTRY:,}.",
            argument="text",
            hint="Append the conclusion, and publish the rest as a file.",
        )
    return plain


def check_key(key: str) -> str:
    """Return the key of an append; raise SpaceInputError for one that cannot be stored."""
    if not re.fullmatch(rf"[!-~]{{1,{LONGEST_KEY}}}", key):
        raise SpaceInputError(
            f"The key must have 1 to {LONGEST_KEY} visible ASCII characters.",
            argument="key",
            hint="Use a UUID, the same one when the call is repeated.",
        )
    return key


def render_entry(at: datetime, author: str, text: str) -> str:
    """Return an entry as a list item; `at` is in UTC.

    A further line that looks like an entry is quoted: search results and other readers remove the
    indent, and then it would seem to be written by another author."""
    # An entry that was not stored by `append` may lack what `check_entry` does.
    first, *rest = (_clean(text) or "(empty)").split("\n")
    plain = "\n".join([first, *(_quoted(line) for line in rest)])
    return f"- {at:%H:%M} {author}: {format_entry(plain)[2:]}"


def _clean(text: str) -> str:
    plain = _LINE_ENDS.sub("\n", well_formed(text).replace("\0", ""))
    return _BULLETS.sub("", plain).strip()


def _quoted(line: str) -> str:
    stripped = line.strip()
    return f"> {stripped}" if _LIKE_AN_ENTRY.match(stripped) else line


def render_log(day: str, entries: Iterable[str]) -> str:
    """Return the log of a day from its rendered entries."""
    return daily_header(day) + "".join(entries)
