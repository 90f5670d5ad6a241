"""Captured entries as lines of Markdown: format one, and parse a file.

    - I prefer tea. <!-- clawmark: origin=user category=preference importance=0.7 id=… at=… -->

People may edit the files: a line without a comment is an entry too, whose id is derived from its
text."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple, cast

from clawmark.text.dates import date_of
from clawmark.text.entry_times import without_times
from clawmark.text.untrusted.origin_labels import ORIGINS, Origin, comment

CATEGORIES = ("preference", "fact", "decision", "entity", "other")
DEFAULT_IMPORTANCE = 0.7
LONGEST_TEXT = 4000
"""Characters of an entry that are searched; a longer line was not written by this module."""

_IDS = uuid.UUID("6f0c1f5e-3f52-5d0b-9d0a-6b5f0f1c8a11")
"""The namespace of derived ids."""
_BULLET = re.compile(r"(?:[-*+]|[0-9]{1,4}[.)])[ \t]+")
_LABEL = re.compile(r"[ \t]*<!-- clawmark:([^<>\n]{0,600}?)-->")
_FIELD = re.compile(r"(\w{1,20})=(\S{1,200})")


class Captured(NamedTuple):
    """One entry of a captured file."""

    id: str
    text: str
    category: str
    importance: float
    origin: Origin
    created: str
    """ISO 8601 with a time zone; empty if unknown."""
    path: str
    start_line: int
    end_line: int

    @property
    def date(self) -> str:
        """YYYY-MM-DD, from the name of the file or from `created`; empty if unknown."""
        return date_of(self.path) or self.created[:10]

    @property
    def created_ms(self) -> int:
        """Milliseconds since 1970; 0 if unknown."""
        try:
            when = datetime.fromisoformat(self.created or self.date)
        except ValueError:
            return 0
        return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)


def one_line(text: str) -> str:
    """Return a text on one line, with single spaces."""
    return " ".join(text.split())


def format_entry(entry: Captured, session_key: str) -> str:
    """Return the line of an entry."""
    label = comment(entry.origin, session_key).removesuffix(" -->")
    fields = (
        f"category={entry.category} importance={entry.importance:g} "
        f"id={entry.id} at={entry.created}"
    )
    return f"- {entry.text} {label} {fields} -->\n"


def parse_entries(path: str, text: str) -> list[Captured]:
    """Return the entries of a file: list items with their indented lines, and other lines."""
    found: list[tuple[int, list[str]]] = []
    is_open = False
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.strip().removeprefix("\ufeff")
        if not any(map(str.isalnum, _LABEL.sub("", bare))) or bare.startswith("#"):
            is_open = False
        elif is_open and line[:1] in " \t" and not _BULLET.match(bare):
            found[-1][1].append(bare)
        else:
            found.append((number, [bare]))
            is_open = True
    return [_entry(path, start, lines) for start, lines in found]


def unique_entries(entries: Iterable[Captured]) -> list[Captured]:
    """Drop repeated entries, and give a copied id to its first line only."""
    kept: dict[str, Captured] = {}
    for entry in entries:
        known = kept.get(entry.id)
        if known is not None and known.text != entry.text:
            entry = entry._replace(id=derived_id(f"{entry.id}\n{entry.text}"))
        kept.setdefault(entry.id, entry)
    return list(kept.values())


def derived_id(text: str) -> str:
    """Return the id of an entry without one."""
    return str(uuid.uuid5(_IDS, text))


def as_id(text: str) -> str:
    """Return an id in its usual form; empty if the text is not one."""
    try:
        return str(uuid.UUID(text.strip()))
    except ValueError:
        return ""


def _entry(path: str, start: int, lines: list[str]) -> Captured:
    whole = " ".join(lines)
    labels = _LABEL.findall(whole)
    fields = dict(_FIELD.findall(labels[-1])) if labels else {}
    said = _LABEL.sub("", whole)
    if labels and "id" not in fields:  # a flush wrote the line, and the time before it
        said = without_times(said)
    text = one_line(_BULLET.sub("", said, count=1))[:LONGEST_TEXT]
    category, origin = fields.get("category", ""), fields.get("origin", "")
    return Captured(
        id=as_id(fields.get("id", "")) or derived_id(text),
        text=text,
        category=category if category in CATEGORIES else "other",
        importance=_importance(fields.get("importance", "")),
        origin=cast(Origin, origin) if origin in ORIGINS else "unknown",
        created=fields.get("at", ""),
        path=path,
        start_line=start,
        end_line=start + len(lines) - 1,
    )


def _importance(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return DEFAULT_IMPORTANCE
    return min(1.0, max(0.0, number)) if number == number else DEFAULT_IMPORTANCE
