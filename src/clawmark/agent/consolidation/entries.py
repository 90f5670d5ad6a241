"""Read the entries of MEMORY.md and of the daily logs, with their citations and days."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from clawmark.agent.consolidation.wording import bare, sentences
from clawmark.model.provenance import Trust
from clawmark.model.values import citation
from clawmark.text.dates import date_of
from clawmark.text.entries import split_entries
from clawmark.text.secrets.redact import Redactor, has_mask
from clawmark.text.untrusted.injection_flags import flags_of
from clawmark.text.untrusted.origin_labels import COMMENT_START, origin_of

LONG_TERM = "MEMORY.md"
_BOX = re.compile(r"\A\s*(?:[-*+]|[0-9]{1,9}[.)])\s+\[([ xX])\]\s")


class SourceText(NamedTuple):
    """A memory file as it was read."""

    path: str
    text: str
    changed: str = ""
    """The day of its last change, YYYY-MM-DD; for MEMORY.md, whose entries have no day."""


class Entry(NamedTuple):
    """A list item or a paragraph of a memory file."""

    path: str
    start_line: int
    end_line: int
    text: str
    """As it stands in the file, without its origin label."""
    heading: str
    """The innermost heading above it."""
    day: str
    """The day it was written; for MEMORY.md, the last day on which it may have been written."""
    trust: Trust = "owner"
    known_day: str = ""
    """For MEMORY.md: the day it was written, if the journal knows; no earlier log replaces it."""

    @property
    def citation(self) -> str:
        return citation(self.path, self.start_line, self.end_line)

    @property
    def plain(self) -> str:
        """Its words on one line, without bullet and time."""
        return " ".join(bare(self.text).split())

    @property
    def sentences(self) -> list[str]:
        return sentences(self.text)

    @property
    def box(self) -> str:
        """`x` for a task that is done, a blank for an open one; empty if it is not a task."""
        found = _BOX.match(self.text)
        return found[1].lower() if found else ""

    @property
    def is_title(self) -> bool:
        """Whether it introduces the entries below it; a list with such lines has several parts."""
        return self.plain.endswith((":", ":**", ":__"))

    @property
    def is_long_term(self) -> bool:
        return self.path == LONG_TERM


class Gate(NamedTuple):
    """What decides whether an entry may be used."""

    redactor: Redactor
    trust_of: Callable[[str], Trust]
    """(text of an entry) → how far it is trusted."""
    written_on: Callable[[str], str]
    """(text of an entry) → the day it was last written, YYYY-MM-DD; empty if it is not known."""
    is_forgotten: Callable[[str], bool]
    known_day: Callable[[str], str] = lambda text: ""
    """(text of an entry of MEMORY.md) → the day it was written, YYYY-MM-DD; empty if it was there
    before the journal."""


def open_gate(redactor: Redactor) -> Gate:
    """Return a gate for files without a journal: only secrets and instructions are kept out."""
    return Gate(
        redactor=redactor,
        trust_of=lambda text: "owner",
        written_on=lambda text: "",
        is_forgotten=lambda text: False,
    )


def read_entries(files: Iterable[SourceText], gate: Gate) -> list[Entry]:
    """Return the entries of some files, the oldest log first; those of MEMORY.md are included.

    Left out of the logs are entries from outside, with a secret, that read like an instruction, or
    that the user had forgotten."""
    entries = list[Entry]()
    for file in files:
        day = date_of(file.path)
        lines = file.text.split("\n")
        for found in split_entries(file.text):
            raw = "\n".join(lines[found.start_line - 1 : found.end_line])
            if file.path != LONG_TERM and not _is_usable(raw, found.text, file.path, gate):
                continue
            written = day or found.day
            if file.path == LONG_TERM:
                written = gate.written_on(found.text) or file.changed
            entries.append(
                Entry(
                    path=file.path,
                    start_line=found.start_line,
                    end_line=found.end_line,
                    text=found.text,
                    heading=found.heading.rsplit(" > ", 1)[-1],
                    day=written,
                    trust=gate.trust_of(found.text),
                    known_day=gate.known_day(found.text) if file.path == LONG_TERM else "",
                )
            )
    return sorted(entries, key=lambda entry: (not entry.is_long_term, entry.day, entry.path))


def _is_usable(raw: str, text: str, path: str, gate: Gate) -> bool:
    """Whether an entry of a log may become part of MEMORY.md, or evidence for a change of it."""
    if COMMENT_START in raw and origin_of(raw, path) in ("tool", "import"):
        return False
    if flags_of(text) or has_mask(text):
        return False
    if gate.redactor.kind_in(text) or gate.is_forgotten(text):
        return False
    return gate.trust_of(text) != "external"
