"""What `clawmark sessions show` says about the memory of a session."""

from __future__ import annotations

from clawmark.agent.session.memory_use import MemoryUse
from clawmark.cli.commands.sessions import memory_lines
from clawmark.composition.history.session_reports import SessionReport

USE = MemoryUse(line=4, time="", how="searched", query="tea", citations=("MEMORY.md#L3",))


def test_what_was_taken_and_the_note_have_a_line_each() -> None:
    report = SessionReport(
        path="sessions/x.jsonl",
        messages=(),
        key="agent:main:main",
        kind="main",
        note="memory/2026-11-01-tea.md",
        uses=(USE, USE._replace(how="recalled", citations=())),
        writes=(),
    )
    assert memory_lines(report) == [
        "Taken from the memory at line 4 (searched): MEMORY.md#L3",
        "Taken from the memory at line 4 (recalled): sources not recorded",
        "Session note: memory/2026-11-01-tea.md",
    ]
