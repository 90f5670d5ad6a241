"""The model of the file view."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.routing import Match
from web_memory import opened, write

from clawmark.model.errors import FileMissing, PathDenied
from clawmark.model.provenance import Origin
from clawmark.web.pages.file import CHARACTERS_SHOWN, LINES_SHOWN, file_page, line_number, routes

PAGE = "# Facts\n\n- Billing runs on MySQL.\n- Ann prefers tea.\n\nA paragraph.\n"


def test_rows_are_blocks_and_raw_rows_are_lines(tmp_path: Path) -> None:
    with opened(tmp_path, {"MEMORY.md": PAGE}) as memory:
        rendered = file_page(memory, "MEMORY.md")
        raw = file_page(memory, "MEMORY.md", "raw")
    assert [row.start_line for row in rendered.rows] == [1, 3, 4, 6]
    assert [row.text for row in raw.rows] == PAGE.split("\n")[:-1]
    assert rendered.rows[1].entry == "MEMORY.md#L3"
    assert (rendered.can_edit, rendered.total_lines) == (True, 6)


def test_entries_say_whose_words_they_are_and_labels_are_not_shown(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.append("mine", to="memory/a.md")
        tool = Origin(actor="agent", kind="web", trust="external")
        memory.append("a page says <!-- clawmark: origin=tool -->", to="memory/a.md", origin=tool)
        mine, page = file_page(memory, "memory/a.md").rows
    assert mine.origin is not None
    assert page.origin is not None
    assert (mine.origin.words, page.origin.words) == ("yours", "from outside")
    assert "clawmark:" not in page.text


def test_brackets_show_where_passages_begin_and_end(tmp_path: Path) -> None:
    with opened(tmp_path, {"MEMORY.md": PAGE}) as memory:
        before = file_page(memory, "MEMORY.md")
        memory.sync()
        after = file_page(memory, "MEMORY.md")
        write(tmp_path / "agent", "MEMORY.md", PAGE + "\nMore.\n")
        changed = file_page(memory, "MEMORY.md")
    assert "Not indexed yet" in before.index_note
    assert (after.index_note, after.passages) == ("", 1)
    brackets = [one for row in after.rows for one in row.brackets if one is not None]
    assert [one.begins for one in brackets] == [True, False, False, False]
    assert [one.ends for one in brackets] == [False, False, False, True]
    assert "has changed since" in changed.index_note


def test_a_line_has_its_entry_and_every_text_it_had(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        base = memory.replace("MEMORY.md", PAGE, "")
        memory.history.record()
        memory.replace("MEMORY.md", PAGE.replace("MySQL", "PostgreSQL"), base)
        line = file_page(memory, "MEMORY.md", line=3).line
    assert line is not None
    assert (line.entry, line.problem) == ("MEMORY.md#L3", "")
    assert [(one.text, one.before) for one in line.changes] == [
        ("- Billing runs on PostgreSQL.", "- Billing runs on MySQL."),
        ("- Billing runs on MySQL.", ""),
    ]


def test_a_heading_and_a_line_after_the_end_have_no_entry(tmp_path: Path) -> None:
    with opened(tmp_path, {"MEMORY.md": PAGE}) as memory:
        heading = file_page(memory, "MEMORY.md", line=1).line
        nowhere = file_page(memory, "MEMORY.md", line=99).line
    assert heading is not None
    assert nowhere is not None
    assert (heading.entry, nowhere.entry) == ("", "")
    assert nowhere.problem


def test_a_long_file_is_shown_in_parts(tmp_path: Path) -> None:
    text = "".join(f"- entry {number}\n" for number in range(1, 1001))
    with opened(tmp_path, {"MEMORY.md": text}) as memory:
        first = file_page(memory, "MEMORY.md")
        second = file_page(memory, "MEMORY.md", start=first.next_line or 0)
        with_line = file_page(memory, "MEMORY.md", line=900)
    assert (first.last_line, first.next_line) == (LINES_SHOWN, LINES_SHOWN + 1)
    assert second.rows[0].text == f"- entry {LINES_SHOWN + 1}"
    assert with_line.first_line <= 900 <= with_line.last_line


def test_a_line_after_many_long_lines_is_on_the_page_that_asks_for_it(tmp_path: Path) -> None:
    text = "".join(f"- entry {number} {'long ' * 100}\n" for number in range(1, 301))
    with opened(tmp_path, {"MEMORY.md": text}) as memory:
        assert file_page(memory, "MEMORY.md").last_line < 290
        model = file_page(memory, "MEMORY.md", line=290)
    assert "entry 290" in next(row.text for row in model.rows if row.start_line == 290)
    assert model.line is not None and model.line.entry == "MEMORY.md#L290"


def test_the_path_in_an_address_may_have_line_breaks() -> None:
    (route,) = routes
    match, scope = route.matches(
        {"type": "http", "method": "GET", "path": "/file/memory/a\nb.md\n"}
    )
    assert match is Match.FULL
    assert scope["path_params"] == {"path": "memory/a\nb.md\n"}


def test_a_line_of_a_megabyte_is_cut_and_the_page_says_so(tmp_path: Path) -> None:
    with opened(tmp_path, {"MEMORY.md": "x" * 1_000_000 + "\nend\n"}) as memory:
        model = file_page(memory, "MEMORY.md")
    assert model.is_cut
    assert sum(len(row.text) for row in model.rows) <= CHARACTERS_SHOWN + 1000


def test_a_missing_file_and_one_that_is_not_memory_are_refused(tmp_path: Path) -> None:
    with opened(tmp_path, {"secret.txt": "x"}) as memory:
        with pytest.raises(FileMissing):
            file_page(memory, "memory/nothing.md")
        with pytest.raises(PathDenied):
            file_page(memory, "secret.txt")
        with pytest.raises(PathDenied):
            file_page(memory, "../../etc/passwd")


def test_a_file_of_an_added_folder_is_only_read(tmp_path: Path) -> None:
    write(tmp_path, "notes/a.md", "- shared\n")
    with opened(tmp_path) as memory:
        memory.add_source(tmp_path / "notes")
        model = file_page(memory, "notes:a.md")
    assert not model.can_edit
    assert model.rows[0].origin is not None
    assert model.rows[0].origin.trust == "external"


def test_a_damaged_index_does_not_hide_the_file(tmp_path: Path) -> None:
    with opened(tmp_path, {"MEMORY.md": PAGE}) as memory:
        memory.sync()
    (index,) = (tmp_path / "state" / "memory").glob("*.sqlite")
    index.write_bytes(b"not a database, but long enough to be read as one" * 100)
    with opened(tmp_path) as memory:
        model = file_page(memory, "MEMORY.md")
    assert model.rows
    assert model.index_note


def test_line_numbers_of_addresses_are_read_strictly() -> None:
    assert [line_number(text) for text in ("12", "", "-1", "x", "9" * 50)] == [12, 0, 0, 0, 0]
