"""What `clawmark sessions show` says about the memory of a session."""

from __future__ import annotations

from clawmark.agent.session.memory_use import MemoryUse
from clawmark.cli.commands.sessions import listing, memory_lines
from clawmark.composition.history.session_reports import SessionReport
from clawmark.model.reports import Transcript

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


def test_list_shows_the_beginning_of_the_name_that_show_takes() -> None:
    found = Transcript(
        path="../.clawmark/agents/main/sessions/95da67d7-9ddd-4ccf-84bd-e20feeab1a2a.jsonl",
        kind="OpenClaw",
        size=9400,
        messages=4,
        first="2026-11-18T06:20:00Z",
        last="2026-11-18T06:20:00Z",
        status="not a source",
    )
    _, shown = listing((found,), 80)
    assert shown.startswith("…/95da67d7-9ddd-4ccf") and len(shown) <= 80
    _, whole = listing((found,))
    assert whole.startswith(found.path)
