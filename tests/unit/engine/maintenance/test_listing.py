"""The listing of memory files, and their newest entries."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.model.errors import FilterError

NOON = datetime(2024, 5, 10, 12, tzinfo=UTC)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    root = tmp_path / "agent"
    write(root, "MEMORY.md", "# Facts\n\n- a\n- b\n- c\n- d\n", "2024-05-09")
    write(root, "memory/2024-05-08.md", "# 2024-05-08\n\n- old one\n- old two\n", "2024-05-10")
    write(root, "memory/2024-05-10.md", "# 2024-05-10\n\n- new one\n- new two\n", "2024-05-10")
    write(root, "memory/projects/ferry.md", "# Ferry\n\n## 2024-05-07\n\nMet Ann.\n", "2024-05-10")
    return Memory.open(
        root, state_dir=tmp_path / "state", clock=lambda: NOON, overrides=IN_UTC, background=False
    )


IN_UTC = {"agents.defaults.userTimezone": "UTC"}


def write(root: Path, path: str, text: str, changed: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    time = datetime.fromisoformat(changed).replace(tzinfo=UTC).timestamp()
    os.utime(file, (time, time))


def texts(memory: Memory, count: int = 10, **filters: str) -> list[str]:
    return [entry.text for entry in memory.recent(count, **filters)]


def test_files_have_their_size_entries_and_last_change(memory: Memory) -> None:
    first, second, *_ = memory.files()
    assert first == ("MEMORY.md", 25, "2024-05-09T00:00:00+00:00", 4)
    assert (second.path, second.entries) == ("memory/2024-05-08.md", 2)


@pytest.mark.parametrize(
    ("patterns", "paths"),
    [
        (["MEMORY.md"], ["MEMORY.md"]),
        (["memory/projects"], ["memory/projects/ferry.md"]),
        (["memory/projects/"], ["memory/projects/ferry.md"]),
        (["memory/2024-*"], ["memory/2024-05-08.md", "memory/2024-05-10.md"]),
        (["ferry.md", "MEMORY.md"], ["MEMORY.md", "memory/projects/ferry.md"]),
        (["../*"], []),
    ],
)
def test_files_are_selected_by_path_folder_or_pattern(
    memory: Memory, patterns: list[str], paths: list[str]
) -> None:
    assert [file.path for file in memory.files(*patterns)] == paths


def test_a_file_that_is_not_text_is_listed_without_entries(memory: Memory) -> None:
    Path(memory.workspace.root, "memory", "x.md").write_bytes(b"\x89PNG\r\n" + bytes(2000))
    assert [file.entries for file in memory.files("x.md")] == [None]
    assert "x.md" not in {entry.path for entry in memory.recent(100)}


def test_the_newest_day_comes_first_and_in_it_the_last_entry(memory: Memory) -> None:
    today, yesterday = ["- new two", "- new one"], ["- d", "- c", "- b"]
    assert texts(memory) == [*today, *yesterday, "- old two", "- old one", "Met Ann."]
    assert texts(memory, 3) == ["- new two", "- new one", "- d"]


def test_of_an_undated_file_the_last_entries_have_the_day_of_its_change(memory: Memory) -> None:
    undated = [entry for entry in memory.recent(100) if not entry.is_dated]
    assert [(entry.citation, entry.day) for entry in undated] == [
        ("MEMORY.md#L6", "2024-05-09"),
        ("MEMORY.md#L5", "2024-05-09"),
        ("MEMORY.md#L4", "2024-05-09"),
    ]


def test_a_day_in_the_future_is_not_newer_than_the_file(memory: Memory) -> None:
    write(Path(memory.workspace.root), "memory/2031-01-01.md", "- planned\n", "2024-05-01")
    assert texts(memory)[-1] == "- planned"


def test_recent_entries_are_filtered_by_day_and_path(memory: Memory) -> None:
    assert texts(memory, since="1d") == ["- new two", "- new one", "- d", "- c", "- b"]
    assert texts(memory, until="2024-05-07") == ["Met Ann."]
    assert texts(memory, path="memory/projects/**") == ["Met Ann."]
    assert texts(memory, 1, until="2024-05-08") == ["- old two"]
    with pytest.raises(FilterError):
        memory.recent(since="yesterday-ish")


def test_every_entry_is_read_back_by_its_citation(memory: Memory) -> None:
    for entry in memory.recent(100):
        assert memory.read(entry.citation).text == entry.text


def test_nothing_outside_of_the_workspace_is_listed(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("- secret\n", encoding="utf-8")
    link = Path(memory.workspace.root, "memory", "link.md")
    link.symlink_to(tmp_path / "secret.md")
    assert "memory/link.md" not in {file.path for file in memory.files()}
    assert "- secret" not in texts(memory, 100)


def test_a_limit_gives_the_first_of_all_entries(memory: Memory) -> None:
    for day in range(1, 9):
        write(
            Path(memory.workspace.root),
            f"memory/2024-04-0{day}.md",
            "".join(f"- {day}.{number}\n" for number in range(day)),
            "2024-05-01",
        )
        write(Path(memory.workspace.root), f"memory/2024-04-0{day}-b.md", "- b\n", "2024-05-02")
    everything = memory.recent(1000)
    assert len(everything) > 40
    for count in range(1, len(everything)):
        assert memory.recent(count) == everything[:count]


def test_days_have_the_size_of_their_files_and_of_entries_below_dated_headings(
    memory: Memory,
) -> None:
    assert [(one.day, one.files) for one in memory.days()] == [
        ("2024-05-07", 1),
        ("2024-05-08", 1),
        ("2024-05-09", 1),
        ("2024-05-10", 1),
    ]
    by_day = {one.day: one.size for one in memory.days()}
    assert by_day["2024-05-08"] == len("# 2024-05-08\n\n- old one\n- old two\n")
    assert by_day["2024-05-07"] == len("Met Ann.")
    assert by_day["2024-05-09"] == len("- b- c- d")  # the last three entries of an undated file


def test_a_file_named_after_a_day_in_the_future_counts_for_the_day_it_changed(
    memory: Memory, tmp_path: Path
) -> None:
    write(tmp_path / "agent", "memory/2031-01-01.md", "- from the future\n", "2024-05-01")
    days = [one.day for one in memory.days()]
    assert "2031-01-01" not in days
    assert "2024-05-01" in days
