"""Check a text for redaction masks and duplicates before it is written to a memory file.

Used for everything that writes: the write gate (agents, `clawmark remember`, flush, curation),
`Memory.append`, `Memory.replace` and session notes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from clawmark.model.values import citation
from clawmark.text.dates import date_of
from clawmark.text.entry_content import normalize_entry, split_entries
from clawmark.text.entry_times import without_times
from clawmark.text.secrets.redact import has_mask


class FileText(NamedTuple):
    """A memory file and its text; empty if the file does not exist."""

    path: str
    text: str


class Problem(NamedTuple):
    """Why a text must not be written, and what to do instead."""

    reason: Literal["mask", "duplicate"]
    message: str
    hint: str


_EMPHASIS = re.compile(r"\*{3}[^\s*][^*\n]{0,500}\*{3}|^[ \t]*(?:\*[ \t]?){3,200}$", re.MULTILINE)
_FOREIGN_MASK = re.compile(
    r"\*{3,}|\[redacted\]|<redacted>|\[masked\]|\[secret\]|\u2022{3,}|\u25cf{3,}"
    r"|\b(?:sk|ghp|gsk|xox[a-z]|pplx|npm)[-_][\w-]{0,8}(?:\u2026|\.\.\.)[\w-]{2,8}\b",
    re.IGNORECASE,
)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")


def check_write(
    text: str, *, files: Sequence[FileText] = (), current: str = "", foreign_masks: bool = False
) -> Problem | None:
    """Return why a text must not be written, or None.

    A mask is accepted if `current`, the text being replaced, has one as well. With `foreign_masks`,
    masks in the style of other programs (`****`, `sk-…abcd`) are problems too. A text is a
    duplicate if each of its paragraphs is an entry of one of the `files`.
    """
    is_masked = has_mask(text) and not has_mask(current)
    if is_masked or (foreign_masks and _FOREIGN_MASK.search(_EMPHASIS.sub("", text))):
        message = "The text contains a redaction mask, which would be kept in place of the real "
        hint = "Leave the masked value out; say where it can be found instead."
        return Problem("mask", f"{message}value.", hint)
    paragraphs = [part for part in map(normalize_entry, _BLANK_LINE.split(text)) if part]
    for file in files:
        places: dict[str, tuple[int, int]] = {}
        for first, last, entry in split_entries(file.text):
            places.setdefault(normalize_entry(entry), (first, last))
            if date_of(file.path):  # the time of a log entry is not part of what it says
                places.setdefault(normalize_entry(without_times(entry)), (first, last))
        found = [places[part] for part in paragraphs if part in places]
        if paragraphs and len(found) == len(paragraphs):
            where = citation(file.path, min(found)[0], max(found)[1])
            return Problem(
                "duplicate", f"It is already there: {where}.", "Nothing needs to be done."
            )
    return None
