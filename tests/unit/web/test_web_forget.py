"""The plan of forgetting, and that only what was shown is forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest
from web_memory import opened, write

from clawmark.agent.forget.values import ForgetReport
from clawmark.model.errors import WorkspaceError
from clawmark.web.pages.forget import ForgetPage, asked, carry_out, forget_page, forgotten_page

PAGE = "- the code of the garage is 4711\n- Ann prefers tea in the morning\n"


def test_the_plan_lists_places_and_changes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, {"MEMORY.md": PAGE}) as memory:
        model = forget_page(memory, "lines", "MEMORY.md#L1")
    assert model.places[0].heading == "memory files"
    assert model.places[0].shown[0].where == "MEMORY.md#L1"
    assert model.back == "/file/MEMORY.md#L1"
    assert (tmp_path / "agent" / "MEMORY.md").read_text() == PAGE


def test_what_was_shown_is_forgotten(tmp_path: Path) -> None:
    with opened(tmp_path, {"MEMORY.md": PAGE}) as memory:
        model = forget_page(memory, "lines", "MEMORY.md#L1")
        report = carry_out(memory, "lines", "MEMORY.md#L1", model.digest)
    assert isinstance(report, ForgetReport)
    assert report.files_changed == 1
    assert (tmp_path / "agent" / "MEMORY.md").read_text() == "- Ann prefers tea in the morning\n"


def test_lines_that_have_moved_since_are_not_forgotten(tmp_path: Path) -> None:
    with opened(tmp_path, {"MEMORY.md": PAGE}) as memory:
        model = forget_page(memory, "lines", "MEMORY.md#L1")
        moved = "- a new first entry of this file\n" + PAGE
        write(tmp_path / "agent", "MEMORY.md", moved)
        again = carry_out(memory, "lines", "MEMORY.md#L1", model.digest)
    assert isinstance(again, ForgetPage)
    assert "has changed" in again.problem
    assert (tmp_path / "agent" / "MEMORY.md").read_text() == moved


def test_something_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path, {"MEMORY.md": PAGE}) as memory:
        with pytest.raises(WorkspaceError):
            forget_page(memory, "lines", "MEMORY.md#L99")
        assert forget_page(memory, "text", "no such words at all").places == ()


def test_an_address_says_in_one_way_what_to_forget() -> None:
    assert asked({"text": " garage ", "path": ""}) == ("text", "garage")
    assert asked({}) == ("", "")
    with pytest.raises(WorkspaceError):
        asked({"text": "garage", "path": "MEMORY.md"})


def test_the_page_after_it_is_made_from_counts_alone(tmp_path: Path) -> None:
    fields = {"files_changed": "1", "history_rewritten": "1", "vectors": "x", "evil": "<b>"}
    with opened(tmp_path, {"MEMORY.md": PAGE}) as memory:
        model = forgotten_page(memory, {**fields, "path": "MEMORY.md#L1"})
        other = forgotten_page(memory, {"path": "../../etc/passwd"})
    assert model.sentence == "Forgotten: 1 memory file changed, the history rewritten."
    assert (model.path, other.path) == ("MEMORY.md", "")
