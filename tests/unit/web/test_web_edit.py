"""Editing a file in the page, with the check for changes of others."""

from __future__ import annotations

from pathlib import Path

import pytest
from web_memory import opened, write

from clawmark.model.errors import PathDenied, WorkspaceError
from clawmark.web.pages.edit import edit_page, merge, save

PAGE = "# Facts\n\n- Billing runs on MySQL.\n- Ann prefers tea.\n- Bob is the plumber.\n"


def text_of(folder: Path) -> str:
    return (folder / "agent" / "MEMORY.md").read_bytes().decode()


def test_an_edit_is_written_as_the_users_own(tmp_path: Path) -> None:
    with opened(tmp_path, {"MEMORY.md": PAGE}) as memory:
        form = edit_page(memory, "MEMORY.md")
        assert save(memory, "MEMORY.md", form.text.replace("MySQL", "SQLite"), form.base) is None
        (record,) = memory.log(1)
    assert "SQLite" in text_of(tmp_path)
    assert (record.record.origin.kind, record.record.origin.trust) == ("edited", "owner")


def test_an_edit_without_a_change_writes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, {"MEMORY.md": PAGE}) as memory:
        form = edit_page(memory, "MEMORY.md")
        sent = form.text.replace("\n", "\r\n")
        assert save(memory, "MEMORY.md", sent, form.base) is None
        assert memory.log(5) == ()
    assert text_of(tmp_path) == PAGE


def test_a_file_with_windows_line_ends_keeps_them(tmp_path: Path) -> None:
    with opened(tmp_path, {"MEMORY.md": "- a\r\n- b\r\n"}) as memory:
        form = edit_page(memory, "MEMORY.md")
        assert form.text == "- a\n- b\n"
        assert save(memory, "MEMORY.md", "- a\r\n- c\r\n- b\r\n", form.base) is None
    assert text_of(tmp_path) == "- a\r\n- c\r\n- b\r\n"


def test_changes_in_different_places_are_merged_and_shown_first(tmp_path: Path) -> None:
    with opened(tmp_path, {"MEMORY.md": PAGE}) as memory:
        form = edit_page(memory, "MEMORY.md")
        theirs = PAGE.replace("Bob is", "Rita is")
        write(tmp_path / "agent", "MEMORY.md", theirs)
        mine = form.text.replace("MySQL", "PostgreSQL")
        again = save(memory, "MEMORY.md", mine, form.base)
        assert text_of(tmp_path) == theirs  # nothing is written before the user has looked
        assert again is not None
        assert again.conflict is not None
        assert again.conflict.is_merged
        assert [one.text for one in again.conflict.theirs if one.sign == "+"] == [
            "- Rita is the plumber."
        ]
        assert [one.text for one in again.conflict.yours if one.sign == "+"] == [
            "- Billing runs on PostgreSQL."
        ]
        assert save(memory, "MEMORY.md", again.text, again.base) is None
    assert text_of(tmp_path) == theirs.replace("MySQL", "PostgreSQL")


def test_changes_of_the_same_line_are_not_merged_and_yours_stays_in_the_form(
    tmp_path: Path,
) -> None:
    with opened(tmp_path, {"MEMORY.md": PAGE}) as memory:
        form = edit_page(memory, "MEMORY.md")
        write(tmp_path / "agent", "MEMORY.md", PAGE.replace("MySQL", "Oracle"))
        mine = form.text.replace("MySQL", "PostgreSQL")
        again = save(memory, "MEMORY.md", mine, form.base)
    assert again is not None
    assert again.conflict is not None
    assert (again.conflict.is_merged, again.text) == (False, mine)
    signs = [(one.sign, one.text) for one in again.conflict.yours if one.sign in "+-"]
    assert signs == [("-", "- Billing runs on Oracle."), ("+", "- Billing runs on PostgreSQL.")]


def test_a_file_that_was_deleted_in_the_meantime_is_a_conflict(tmp_path: Path) -> None:
    with opened(tmp_path, {"MEMORY.md": PAGE}) as memory:
        form = edit_page(memory, "MEMORY.md")
        (tmp_path / "agent" / "MEMORY.md").unlink()
        again = save(memory, "MEMORY.md", form.text + "- more\n", form.base)
    assert again is not None
    assert "It was deleted." in again.problem
    assert again.base == ""


def test_a_new_file_that_someone_else_made_first_is_a_conflict(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        form = edit_page(memory, "memory/new.md")
        write(tmp_path / "agent", "memory/new.md", "- theirs\n")
        again = save(memory, "memory/new.md", "- mine\n", form.base)
    assert again is not None
    assert again.conflict is not None


def test_an_empty_text_and_a_mask_are_not_written_and_stay_in_the_form(tmp_path: Path) -> None:
    with opened(tmp_path, {"MEMORY.md": PAGE}) as memory:
        form = edit_page(memory, "MEMORY.md")
        empty = save(memory, "MEMORY.md", " \n", form.base)
        masked = save(memory, "MEMORY.md", PAGE + "- key [redacted:openai-key]\n", form.base)
    assert empty is not None
    assert "forget" in empty.problem
    assert masked is not None
    assert "[redacted:" in masked.text
    assert masked.problem
    assert text_of(tmp_path) == PAGE


def test_a_file_outside_the_memory_cannot_be_edited(tmp_path: Path) -> None:
    write(tmp_path, "notes/a.md", "- shared\n")
    with opened(tmp_path) as memory:
        memory.add_source(tmp_path / "notes")
        for path in ("notes:a.md", "AGENTS.txt", "../x.md"):
            with pytest.raises(PathDenied):
                edit_page(memory, path)
            with pytest.raises(PathDenied):
                save(memory, path, "x", "")


def test_a_text_that_a_form_cannot_hold_is_refused(tmp_path: Path) -> None:
    files = {"MEMORY.md": "a\0b\n", "memory/long.md": "x\n" * 600_000}
    with opened(tmp_path, files) as memory:
        for path in files:
            with pytest.raises(WorkspaceError, match="for a form"):
                edit_page(memory, path)


def test_a_merge_without_own_changes_is_none() -> None:
    assert merge("x", "a\n", "a\n", "b\n") is None
