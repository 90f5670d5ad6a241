"""What the lines of a file have replaced, from one version to the next."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from clawmark.history.history import History
from clawmark.history.replaced import Text, find_replaced, map_lines, replaced_in, replacements
from clawmark.history.repository import Version
from clawmark.model.values import FileState
from clawmark.model.versions import Replaced


def pairs(old: str, new: str) -> dict[str, str]:
    before, after = old.split("\n"), new.split("\n")
    found = map_lines(before, after).replaced
    return {after[number]: before[origin] for number, origin in found.items()}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("- The launch is in February", "- The launch moved to March"),
        ("- The port is 5432.", "- The port is 5433."),
        ("- 09:10 Ines leads the heron team", "- 17:45 Tomas leads the heron team now"),
        ("Der Start ist im Februar.", "Der Start wurde auf März verschoben."),
        ("发布会在二月举行", "发布会在三月举行"),
        ("- [ ] Renew the certificate", "- [x] Renew the certificate on Friday"),
    ],
)
def test_a_line_that_says_something_else_about_the_same_is_a_replacement(
    old: str, new: str
) -> None:
    assert pairs(f"# Facts\n\n{old}\n- Anna likes tea", f"# Facts\n\n{new}\n- Anna likes tea") == {
        new: old
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("- Anna likes tea", "- The launch moved to March"),
        ("- Anna likes tea", "- Anna's birthday is on the third of May"),
        ("", "- The launch moved to March"),
        ("- The launch moved to March", ""),
        ("---", "***"),
        ("- Room 7 has 12 chairs and a lamp", "- 7 people came"),
        ("- Same words", "* same words."),
        ("- 09:10 We chose PostgreSQL", "- 10:20 We chose PostgreSQL"),
        ("- We chose SQLite", "- We chose SQLite <!-- clawmark: origin=import -->"),
    ],
)
def test_an_unrelated_an_added_and_an_equal_line_are_not(old: str, new: str) -> None:
    assert pairs(f"# Facts\n\n{old}", f"# Facts\n\n{new}") == {}


def test_lines_are_paired_with_the_most_similar_line() -> None:
    old = "- The owner of heron is Ines\n- The owner of quarry is Yuki"
    new = "- The owner of quarry is Farid\n- The owner of heron is Greta"
    assert pairs(old, new) == {
        "- The owner of quarry is Farid": "- The owner of quarry is Yuki",
        "- The owner of heron is Greta": "- The owner of heron is Ines",
    }


def test_a_moved_line_is_followed_and_not_reported() -> None:
    found = map_lines(["- one apple", "- two pears", "", "x"], ["", "x", "- one apple", "- new"])
    assert found.replaced == {}
    assert found.same[2] == 0


def test_a_file_that_was_written_anew_is_not_compared_line_by_line() -> None:
    old = [f"- old fact {number}" for number in range(300)]
    new = [f"- new fact {number}" for number in range(300)]
    assert map_lines(old, new).replaced == {}


def test_a_line_that_changed_twice_has_two_earlier_texts() -> None:
    states = [
        Text("# x\n- The launch is in May\n- tea", 300.0, "c"),
        Text("- The launch is in March\n- tea", 200.0, "b"),
        Text("- coffee\n- The launch is in February", 100.0, "a"),
    ]
    assert find_replaced(states, 2, 2, UTC) == (
        Replaced("The launch is in March", "1970-01-01T00:05:00+00:00", "c"),
        Replaced("The launch is in February", "1970-01-01T00:03:20+00:00", "b"),
    )
    assert find_replaced(states, 3, 3, UTC) == (), "tea and coffee are not the same fact"
    assert find_replaced([], 1, 9, UTC) == ()


@pytest.fixture
def recorded(tmp_path: Path) -> History:
    """Three versions of MEMORY.md and one of another file between them."""
    now = [0.0]
    history = History(str(tmp_path / "state" / "history.git"), clock=lambda: now[0])
    steps = [
        {"MEMORY.md": "- The launch is in February\n- Anna likes tea\n"},
        {"MEMORY.md": "- The launch is in February\n- Anna likes tea\n", "memory/x.md": "- x\n"},
        {"MEMORY.md": "- The launch moved to March\n- Anna likes tea\n", "memory/x.md": "- x\n"},
    ]
    for number, files in enumerate(steps):
        now[0] = datetime(2026, 3, 1 + number, 10, 14, tzinfo=UTC).timestamp()
        record(history, files, number)
    return history


def record(history: History, files: dict[str, str], number: int) -> Version | None:
    states = [
        FileState(path=path, source="memory", size=number, mtime_ns=number, inode=1, device=1)
        for path in files
    ]
    return history.record(states, lambda path: files[path].encode(), "sync", wait=True)


def test_the_replaced_line_has_the_time_of_the_version_that_replaced_it(recorded: History) -> None:
    (found,) = replacements(recorded, "MEMORY.md", 1, 2, zone=UTC)
    assert found.text == "The launch is in February"
    assert found.until == "2026-03-03T10:14:00+00:00"
    assert recorded.find(found.version).seconds
    assert replacements(recorded, "MEMORY.md", 2, 2) == ()
    assert replacements(recorded, "memory/x.md", 1, 1) == ()
    assert replacements(recorded, "absent.md", 1, 1) == ()


def test_an_earlier_version_has_only_what_was_replaced_before_it(recorded: History) -> None:
    (newest, middle, _) = [one.version for one in recorded.versions()]
    assert replacements(recorded, "MEMORY.md", 1, 1, at=middle) == ()
    assert replacements(recorded, "MEMORY.md", 1, 1, at=newest)
    assert replaced_in(recorded, newest, "MEMORY.md") == (
        ("The launch is in February", "The launch moved to March"),
    )
    assert replaced_in(recorded, middle, "MEMORY.md") == ()


def test_a_change_that_is_not_recorded_yet_ends_when_the_file_changed(recorded: History) -> None:
    changed = datetime(2026, 3, 9, 8, tzinfo=UTC).timestamp()
    present = Text("- The launch moved to May\n- Anna likes tea\n", changed)
    found = replacements(recorded, "MEMORY.md", 1, 1, present=present, zone=UTC)
    assert [(one.text, one.until[:10]) for one in found] == [
        ("The launch moved to March", "2026-03-09"),
        ("The launch is in February", "2026-03-03"),
    ]


def test_forgotten_text_does_not_come_back(recorded: History) -> None:
    recorded.rewrite(lambda _, data: data.replace(b"- The launch is in February\n", b""))
    assert replacements(recorded, "MEMORY.md", 1, 2) == ()
