"""How one line of a file came to say what it says."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

from clawmark import Memory
from clawmark.history.line_history import trace_line
from clawmark.history.replaced import Text

FIRST = Text("# Facts\n\n- The launch is in February\n- Anna likes tea", 100, "aaaa")
SECOND = Text("# Facts\n\n- The launch moved to March\n- Anna likes tea", 200, "bbbb")
THIRD = Text(
    "# Facts\n\n- Bob is the plumber\n- Anna likes tea\n- The launch moved to April", 300, "cccc"
)


def told(line: int, *states: Text) -> list[tuple[str, str, str]]:
    return [(one.text, one.before, one.version) for one in trace_line(states, line, UTC)]


def test_a_line_has_each_text_it_had_the_newest_first() -> None:
    assert told(3, SECOND, FIRST) == [
        ("- The launch moved to March", "- The launch is in February", "bbbb"),
        ("- The launch is in February", "", "aaaa"),
    ]


def test_a_line_is_followed_when_it_moves() -> None:
    assert told(5, THIRD, SECOND, FIRST) == [
        ("- The launch moved to April", "- The launch moved to March", "cccc"),
        ("- The launch moved to March", "- The launch is in February", "bbbb"),
        ("- The launch is in February", "", "aaaa"),
    ]


def test_the_history_of_a_line_ends_where_it_was_new() -> None:
    assert told(3, THIRD, SECOND, FIRST) == [("- Bob is the plumber", "", "cccc")]


def test_a_line_that_never_changed_is_as_old_as_the_history() -> None:
    assert told(4, THIRD, SECOND, FIRST) == [("- Anna likes tea", "", "aaaa")]


def test_a_line_that_does_not_exist_has_no_history() -> None:
    assert told(9, SECOND, FIRST) == []
    assert told(0, SECOND, FIRST) == []
    assert told(1) == []


def test_the_times_are_in_the_zone_of_the_user() -> None:
    assert trace_line([FIRST], 3, UTC)[0].since == "1970-01-01T00:01:40+00:00"


def test_memory_says_who_wrote_each_text_of_a_line(tmp_path: Path) -> None:
    root = tmp_path / "agent"
    root.mkdir()
    with Memory.open(
        root, state_dir=tmp_path / "state", provider="none", background=False
    ) as memory:
        page = "# Facts\n\n- The launch is in February\n"
        base = memory.replace("MEMORY.md", page, "")
        memory.history.record()
        memory.replace("MEMORY.md", page.replace("is in February", "moved to March"), base)
        newest, oldest = memory.history.line("MEMORY.md", 3)
    assert (newest.text, newest.before) == (
        "- The launch moved to March",
        "- The launch is in February",
    )
    assert [one.kind for one in newest.writers] == ["remember"]
    assert oldest.version != newest.version


def test_an_earlier_text_of_a_file_is_found_by_its_hash(tmp_path: Path) -> None:
    root = tmp_path / "agent"
    root.mkdir()
    with Memory.open(
        root, state_dir=tmp_path / "state", provider="none", background=False
    ) as memory:
        base = memory.replace("MEMORY.md", "- one\n", "")
        memory.replace("MEMORY.md", "- two\n", base)
        assert memory.history.text_with_hash("MEMORY.md", base) == b"- one\n"
        assert memory.history.text_with_hash("MEMORY.md", "0" * 64) is None
