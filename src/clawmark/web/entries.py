"""Entries of memory files as pages show them: their text, and in words whose it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from clawmark.agent.review.wording import describe_origin
from clawmark.memory import Memory
from clawmark.model.documents import MemoryEntry
from clawmark.model.provenance import EntryOrigin, Origin, Trust
from clawmark.text.entry_times import without_times
from clawmark.web.markdown import file_address

TRUST_WORDS: dict[Trust, str] = {
    "owner": "yours",
    "agent": "by the agent",
    "external": "from outside",
}
LONGEST_TEXT = 4000
"""Longer entries are cut; the page of their file has all of it."""
_TIME = re.compile(r"[-*+] (?:\[[ xX]\] )?((?:[01][0-9]|2[0-3]):[0-5][0-9]) ")
_BULLET = re.compile(r"\A[-*+] ")
_KINDS = {
    "remember": "remembered",
    "import": "imported",
    "web": "from a web page",
    "edited": "edited",
    "accepted": "accepted in review",
    "undo": "put back by an undo",
    "restore": "restored",
}


class ShownOrigin(NamedTuple):
    """Where an entry came from, in words."""

    trust: Trust
    words: str
    """`yours`, `by the agent` or `from outside`."""
    how: str
    """How it was written, such as `saved before a compaction`; empty if that is not recorded."""
    when: str
    """When it was written, `2026-11-01 14:05`."""
    session: str


class ShownEntry(NamedTuple):
    """An entry of a memory file."""

    path: str
    start_line: int
    citation: str
    address: str
    day: str
    is_dated: bool
    """Whether its file says which day it is; False if it is the day of the file's last change."""
    time: str
    """The time that the entry begins with, `14:05`; empty if there is none."""
    heading: str
    text: str
    """Its Markdown, without bullet and time."""
    is_cut: bool
    origin: ShownOrigin


def shown_entries(memory: Memory, entries: Sequence[MemoryEntry]) -> tuple[ShownEntry, ...]:
    """Return entries with their origins."""
    origins = memory.entry_origins(entries)
    return tuple(
        _shown_entry(entry, origin) for entry, origin in zip(entries, origins, strict=True)
    )


def _shown_entry(entry: MemoryEntry, origin: EntryOrigin) -> ShownEntry:
    timed = _TIME.match(entry.text)
    return ShownEntry(
        path=entry.path,
        start_line=entry.start_line,
        citation=entry.citation,
        address=file_address(entry.path, entry.start_line),
        day=entry.day,
        is_dated=entry.is_dated,
        time=timed[1] if timed else "",
        heading=entry.heading,
        text=_without_bullet(without_times(entry.text))[:LONGEST_TEXT],
        is_cut=len(entry.text) > LONGEST_TEXT,
        origin=shown_origin(origin),
    )


def _without_bullet(text: str) -> str:
    """Remove the bullet of an entry, and the indentation of its other lines that went with it."""
    if not _BULLET.match(text):
        return text
    return "\n".join(line.removeprefix("  ") for line in f"  {text[2:]}".split("\n"))


def shown_origin(origin: EntryOrigin) -> ShownOrigin:
    """Describe where an entry came from."""
    record = origin.record
    return ShownOrigin(
        trust=origin.trust,
        words=TRUST_WORDS[origin.trust],
        how=how_written(record.origin) if record is not None else "",
        when=minute_of(record.time) if record is not None else "",
        session=record.origin.session if record is not None else "",
    )


def how_written(origin: Origin) -> str:
    """Return how something was written, in a few words."""
    return _KINDS.get(origin.kind) or describe_origin(origin._replace(session=""))


def writers(origins: Iterable[Origin]) -> str:
    """Return who wrote something, as `edited (yours), noted with a tool (by the agent)`."""
    words = (f"{how_written(one)} ({TRUST_WORDS[one.trust]})" for one in origins)
    return ", ".join(dict.fromkeys(words))


def minute_of(time: str) -> str:
    """Format an ISO time as `2026-11-01 14:05`."""
    return f"{time[:10]} {time[11:16]}".strip()
