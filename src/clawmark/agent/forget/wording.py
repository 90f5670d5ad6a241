"""The words in which a plan and a report are shown, on a terminal and on a page."""

from __future__ import annotations

from clawmark.agent.forget.values import ForgetReport, PlaceKind

HEADINGS: dict[PlaceKind, str] = {
    "memory": "memory files",
    "transcript": "transcripts",
    "session": "transcripts that are deleted",
    "version": "kept versions and edited copies",
    "history": "history",
    "proposal": "proposals",
    "copy": "other copies in the state folder",
    "source": "added folders that are no longer searched",
    "journal": "journal",
    "index": "index and cached vectors",
}
"""What each kind of place is called, in the order in which they are shown."""


def describe_report(report: ForgetReport) -> str:
    """Return what was removed, in one sentence."""
    parts = [
        f"{count:,} {what}{'' if count == 1 else 's'} {done}"
        for count, what, done in (
            (report.files_deleted, "memory file", "deleted"),
            (report.files_changed, "memory file", "changed"),
            (report.transcripts_deleted, "transcript", "deleted"),
            (report.transcripts_changed, "transcript", "changed"),
            (report.versions, "kept version", "cleaned"),
            (report.journal_records, "journal record", "changed"),
            (report.vectors, "cached vector", "removed"),
        )
        if count
    ]
    if report.history_rewritten:
        parts.append("the history rewritten")
    return f"Forgotten: {', '.join(parts) or 'nothing was left to remove'}."
