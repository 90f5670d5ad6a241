"""Entries for tests of consolidation."""

from __future__ import annotations

from clawmark.agent.consolidation.entries import (
    LONG_TERM,
    Entry,
    Gate,
    SourceText,
    open_gate,
    read_entries,
)
from clawmark.text.secrets.redact import Redactor

GATE = open_gate(Redactor())


def page(*lines: str, changed: str = "") -> SourceText:
    """Return a MEMORY.md with these lines."""
    return SourceText(LONG_TERM, "\n".join([*lines, ""]), changed)


def log(day: str, *items: str) -> SourceText:
    """Return the log of a day with these entries."""
    lines = [f"# {day}", "", *(f"- {item}" for item in items), ""]
    return SourceText(f"memory/{day}.md", "\n".join(lines))


def entries_of(*files: SourceText, gate: Gate = GATE) -> list[Entry]:
    return read_entries(files, gate)
