"""`clawmark ls` and `clawmark recent`, as a person and a script use them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commands import Place, new_place, says_one_clear_thing


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new_place(tmp_path)


def test_ls_is_a_table_with_totals(place: Place) -> None:
    done = place.run("ls")
    head, first, second, total = done.out.splitlines()
    assert head.split() == ["PATH", "ENTRIES", "SIZE", "CHANGED"]
    assert first.split()[:4] == ["MEMORY.md", "1", "65", "B"]
    assert second.split()[:2] == ["memory/2026-11-15.md", "2"]
    assert total == "2 files, 3 entries, 140 B"
    assert place.run("ls", "-l").out == "MEMORY.md\nmemory/2026-11-15.md\n"


def test_ls_selects_files_and_says_when_there_is_none(place: Place) -> None:
    assert place.run("ls", "memory", "-l").out == "memory/2026-11-15.md\n"
    assert [file["path"] for file in place.run("ls", "*.md", "-j").json()["files"]] == [
        "MEMORY.md",
        "memory/2026-11-15.md",
    ]
    missing = place.run("ls", "memory/nope.md")
    assert missing.code == 3 and says_one_clear_thing(missing)
    assert place.run("ls", "nope", "-j").json()["error"]["type"] == "FileMissing"


def test_hostile_names_cannot_move_the_cursor(place: Place) -> None:
    place.write("memory/x\x1b[2J\ny.md", "- \x1b]0;title\x07 text\n")
    for words in (("ls",), ("ls", "-l"), ("recent",)):
        assert "\x1b" not in place.run(*words).out


def test_recent_has_days_entries_and_citations(place: Place) -> None:
    done = place.run("recent", "--path", "memory/**", "-n", "1")
    assert done.out == "2026-11-15\n  - The router got a new cable.\n    memory/2026-11-15.md#L4\n"
    (entry,) = place.run("recent", "--path", "memory/**", "-n", "1", "-j").json()["entries"]
    assert entry == {
        "path": "memory/2026-11-15.md",
        "startLine": 4,
        "endLine": 4,
        "citation": "memory/2026-11-15.md#L4",
        "date": "2026-11-15",
        "isDated": True,
        "heading": "2026-11-15",
        "text": "- The router got a new cable.",
    }


def test_recent_wraps_long_entries_and_keeps_nested_items(place: Place) -> None:
    place.write("memory/2026-11-14.md", f"- {'word ' * 60}\n- short\n  - nested\n")
    lines = place.run("recent", "--path", "memory/2026-11-14.md").out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1:3] == ["  - short", "    - nested"]
    assert "  …" in lines


def test_remembered_notes_are_the_most_recent(place: Place) -> None:
    assert place.run("remember", "The ferry leaves at nine").code == 0
    first = place.run("recent", "-j").json()["entries"][0]
    assert re.fullmatch(r"- \d\d:\d\d The ferry leaves at nine", first["text"])


def test_a_wrong_day_is_one_clear_sentence(place: Place) -> None:
    done = place.run("recent", "--since", "soon")
    assert done.code == 2 and says_one_clear_thing(done)


def test_quiet_leaves_out_notes_and_keeps_errors(place: Place) -> None:
    loud = place.run("recent", "--since", "2031-01-01")
    assert loud.err == "clawmark: no entry matches.\n"
    assert place.run("recent", "-q", "--since", "2031-01-01").err == ""
    assert place.run("-q", "recent", "--since", "soon").err != ""
    place.state.mkdir(exist_ok=True)
    (place.state / "clawmark.json").write_text("{ memory: { nope: 1 } }", encoding="utf-8")
    assert "nope" in place.run("ls").err and place.run("ls", "-q").err == ""
