"""What agents find by searching is counted by day, without keeping any text."""

from __future__ import annotations

from pathlib import Path

from clawmark.agent.consolidation.usage import UsageCounts, used_entries
from clawmark.model.values import Hit, SourceName

NUTS = "- Cashews and pistachios are dangerous for Ines."
OTHER = "- Peanuts are fine to eat."


def hit(path: str, snippet: str, source: SourceName = "memory") -> Hit:
    return Hit(
        path=path,
        start_line=3,
        end_line=4,
        score=0.9,
        snippet=snippet,
        snippet_start=3,
        snippet_end=4,
        source=source,
        vector_score=0.9,
        text_score=0.9,
        date="",
    )


def test_only_the_entry_of_a_log_that_answers_the_question_is_used() -> None:
    snippet = f"{NUTS}\n{OTHER}"
    question = "are cashews dangerous for Ines?"
    assert used_entries(question, [hit("memory/2026-02-16.md", snippet)]) == [NUTS]
    assert used_entries(question, [hit("MEMORY.md", snippet)]) == []
    assert used_entries(question, [hit("memory/2026-02-16.md", snippet, "sessions")]) == []
    assert used_entries("which server is it?", [hit("memory/2026-02-16.md", snippet)]) == []


def test_days_are_counted_once_and_the_file_has_no_text(tmp_path: Path) -> None:
    counts = UsageCounts(str(tmp_path / "usage.json"))
    for day in ("2026-03-01", "2026-03-01", "2026-03-02"):
        counts.record([NUTS], day)
    days = counts.read()
    assert (days(f"{NUTS[2:]}"), days(OTHER)) == (2, 0)
    assert "Cashews" not in (tmp_path / "usage.json").read_text()


def test_a_damaged_file_counts_nothing_and_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "usage.json"
    path.write_text("{")
    counts = UsageCounts(str(path))
    assert counts.read()(NUTS) == 0
    counts.record([NUTS], "2026-03-01")
    assert counts.read()(NUTS) == 1


def test_a_file_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file in place of the folder")
    counts = UsageCounts(str(tmp_path / "state" / "usage.json"))
    counts.record([NUTS], "2026-03-01")
    assert counts.read()(NUTS) == 0
