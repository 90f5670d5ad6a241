"""Undo of deletions and renames through the memory tool, and of what the user accepted."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Place, new_place, says_one_clear_thing

from clawmark import Memory
from clawmark.adapters.memories import BY_AGENT, Memories
from clawmark.agent.review.hunks import appended_hunk
from clawmark.composition.history.records import make_journal
from clawmark.model.errors import NothingToUndo
from clawmark.model.provenance import Origin
from clawmark.workspace.write import describe_entry

TEXT = b"# Ferry\r\n\r\n- leaves at nine \xe2\x80\x94 no line end"
NOTE = "memory/ferry.md"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = new_place(tmp_path)
    with opened(place) as memory:
        memory.workspace.append("memory/older.md", "- an older write of the agent", origin=BY_AGENT)
    (place.workspace / NOTE).write_bytes(TEXT)
    return place


def opened(place: Place) -> Memory:
    return Memory.open(place.workspace, state_dir=place.state, provider="none", background=False)


def tool(memory: Memory) -> Memories:
    return Memories(memory.workspace, BY_AGENT)


def assert_older_write_is_there(place: Place) -> None:
    assert (place.workspace / "memory/older.md").read_text() == "- an older write of the agent\n"


@pytest.mark.parametrize("text", [TEXT, b"", b"\xef\xbb\xbfx\n"], ids=["text", "empty", "mark"])
def test_a_deleted_file_comes_back_byte_by_byte(place: Place, text: bytes) -> None:
    (place.workspace / NOTE).write_bytes(text)
    with opened(place) as memory:
        tool(memory).delete("/memories/ferry.md")
    assert not (place.workspace / NOTE).exists()
    ran = place.run("undo", "--yes")
    assert ran.code == 0, ran.err
    assert (place.workspace / NOTE).read_bytes() == text
    assert_older_write_is_there(place)
    assert place.run("undo", "--yes").code == 0, "the write before it is next"
    assert not (place.workspace / "memory/older.md").exists()


def test_a_deleted_file_comes_back_after_a_sync_and_without_kept_texts(place: Place) -> None:
    place.run("index")
    with opened(place) as memory:
        tool(memory).delete("/memories/ferry.md")
    place.run("index")
    for kept in (place.state / "versions").rglob("*.md"):
        kept.unlink()
    assert place.run("undo", "--yes").code == 0
    assert (place.workspace / NOTE).read_bytes() == TEXT


def test_a_deletion_is_not_taken_back_if_the_file_was_made_again(place: Place) -> None:
    with opened(place) as memory:
        tool(memory).delete("/memories/ferry.md")
    (place.workspace / NOTE).write_text("new\n")
    ran = place.run("undo", "--yes")
    assert ran.code == 3 and says_one_clear_thing(ran) and "has changed since" in ran.err
    assert (place.workspace / NOTE).read_text() == "new\n"
    assert_older_write_is_there(place)


def test_a_renamed_file_gets_its_name_back_also_after_an_edit(place: Place) -> None:
    with opened(place) as memory:
        tool(memory).rename("/memories/ferry.md", "/memories/boats/ferry.md")
    moved = place.workspace / "memory/boats/ferry.md"
    moved.write_bytes(TEXT + b"\n- edited\n")
    document = place.run("undo", "--yes", "--json").json()
    assert (document["movedTo"], document["deleted"], document["changed"]) == (NOTE, False, True)
    assert (place.workspace / NOTE).read_bytes() == TEXT + b"\n- edited\n"
    assert not moved.exists()
    assert_older_write_is_there(place)


def test_a_renamed_folder_gets_its_name_back(place: Place) -> None:
    place.write("memory/boats/a.md", "- a\n")
    with opened(place) as memory:
        tool(memory).rename("/memories/boats", "/memories/ships")
    ran = place.run("undo", "--yes")
    assert ran.code == 0 and "rename to memory/boats" in ran.out
    assert (place.workspace / "memory/boats/a.md").read_text() == "- a\n"
    assert not (place.workspace / "memory/ships").exists()


def test_a_rename_is_not_taken_back_if_the_old_name_is_in_use(place: Place) -> None:
    with opened(place) as memory:
        tool(memory).rename("/memories/ferry.md", "/memories/boat.md")
    (place.workspace / NOTE).write_text("new\n")
    ran = place.run("undo", "--yes")
    assert ran.code == 3 and says_one_clear_thing(ran)
    assert f"there is another {NOTE} now" in ran.err
    (place.workspace / NOTE).unlink()
    (place.workspace / "memory/boat.md").unlink()
    assert "memory/boat.md is gone" in place.run("undo", "--yes").err
    assert_older_write_is_there(place)


def test_a_deleted_folder_is_refused_in_one_sentence(place: Place) -> None:
    place.write("memory/boats/a.md", "- a\n")
    with opened(place) as memory:
        tool(memory).delete("/memories/boats")
    ran = place.run("undo", "--yes")
    assert ran.code == 3 and says_one_clear_thing(ran) and "it deleted a folder" in ran.err
    assert_older_write_is_there(place)


def test_an_undo_of_a_rename_that_was_interrupted_is_completed(place: Place) -> None:
    with opened(place) as memory:
        tool(memory).rename("/memories/ferry.md", "/memories/boat.md")
        journal = make_journal(memory.places, memory.settings)
        write = list(journal.records())[-1]
        by_undo = Origin("user", "undo", "owner")
        journal.begin(
            by_undo, NOTE, "", action="rename", moved_from="memory/boat.md", undoes=write.id
        )
        (place.workspace / "memory/boat.md").rename(place.workspace / NOTE)
    assert "is complete" in place.run("undo", "--yes").out
    assert (place.workspace / NOTE).read_bytes() == TEXT
    assert place.run("undo", "--yes").code == 0, "the write before it is next"
    assert not (place.workspace / "memory/older.md").exists()


def test_a_write_that_is_known_not_to_have_happened_is_passed_over(place: Place) -> None:
    with opened(place) as memory:
        journal = make_journal(memory.places, memory.settings)
        journal.drop(journal.begin(BY_AGENT, NOTE, "", action="delete"))
    assert place.run("undo", "--yes").code == 0
    assert not (place.workspace / "memory/older.md").exists()


def test_what_the_user_accepted_is_taken_back_with_any(place: Place) -> None:
    before = (place.workspace / "MEMORY.md").read_bytes()
    with opened(place) as memory:
        hunk = appended_hunk("MEMORY.md", "- The ferry leaves at ten.", "Said twice.")
        origin = Origin("agent", "curation", "agent")
        proposal = memory.review.add([hunk], title="Curate MEMORY.md", origin=origin)
        assert proposal is not None
        memory.review.accept(proposal.id)
        assert (place.workspace / "MEMORY.md").read_bytes() != before
        assert memory.history.plan_undo().path == "memory/older.md", "the agent did not write it"
        change = memory.history.undo(anyone=True)
        assert change.write is not None and change.write.origin.kind == "accepted"
    assert (place.workspace / "MEMORY.md").read_bytes() == before


def test_a_deletion_whose_text_was_forgotten_is_not_taken_back(place: Place) -> None:
    with opened(place) as memory:
        memory.sync()
        tool(memory).delete("/memories/ferry.md")
        memory.forget(memory.plan_forget("leaves at nine"))
        with pytest.raises(NothingToUndo, match="which bytes were deleted"):
            memory.history.undo()
    assert not (place.workspace / NOTE).exists()


def test_a_write_whose_bytes_are_not_known_is_not_taken_back(place: Place) -> None:
    with opened(place) as memory:
        memory.journal.begin(BY_AGENT, "memory/older.md", "- two")
        written = describe_entry("- three", "memory/older.md")
        record = memory.journal.begin(BY_AGENT, "memory/older.md", "- three", written=written)
        assert record.written.entry
    ran = place.run("undo", "--yes")
    assert ran.code == 3 and "does not say which bytes" in ran.err
    assert_older_write_is_there(place)
