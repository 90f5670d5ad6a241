"""`clawmark forget` in processes of its own: the plan, the confirmation and the report."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest
from commands import CLAWMARK, HANG_SECONDS, Place, new_place, says_one_clear_thing
from forget_scene import CANARY, SECRET, traces

from clawmark import Memory


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = new_place(tmp_path)
    made.write("MEMORY.md", f"# Facts\n\n- Ann prefers tea.\n- {SECRET}.\n")
    assert made.run("remember", "--force", SECRET).code == 0
    assert made.run("index").code == 0
    return made


def test_the_plan_is_shown_and_nothing_is_changed(place: Place) -> None:
    before = traces(place.workspace, place.state)
    shown = place.run("forget", CANARY, "--dry-run")
    assert shown.code == 0 and "memory files (2)" in shown.out
    assert "MEMORY.md#L4" in shown.out and "what cannot be reached" in shown.out
    assert place.run("forget", CANARY, "--json").json()["done"] is False
    unasked = place.run("forget", CANARY)
    assert unasked.code == 2 and "--yes" in unasked.err
    assert traces(place.workspace, place.state) == before


def test_a_confirmed_plan_is_carried_out(place: Place) -> None:
    done = place.run("forget", CANARY, "--yes")
    assert done.code == 0 and "Forgotten: 2 memory files changed" in done.out
    assert traces(place.workspace, place.state) == []
    nothing = place.run("forget", CANARY, "--yes")
    assert nothing.code == 0 and "Nothing was found" in nothing.out
    assert place.run("index", "--force").code == 0
    assert traces(place.workspace, place.state) == []
    assert "Ann prefers tea" in (place.workspace / "MEMORY.md").read_text("utf-8")


@pytest.mark.parametrize(
    "written",
    [
        "The **safe** behind the _piano_ opens with `Oriole5588` today",
        "The safe be\u200bhind the piano opens with Ori\u00adole5588 today",
        "The ~~safe~~ behind *the piano* opens with **Oriole5588** today",
    ],
)
def test_a_text_is_found_without_its_emphasis_and_invisible_characters(
    place: Place, written: str
) -> None:
    place.write("memory/safe.md", f"- {written}\n- The roof is new.\n")
    assert place.run("index").code == 0
    done = place.run("forget", "safe behind the piano opens with Oriole5588", "--yes")
    assert done.code == 0 and "Forgotten: 1 memory file changed" in done.out
    assert (place.workspace / "memory/safe.md").read_text("utf-8") == "- The roof is new.\n"


@pytest.mark.parametrize(("answer", "is_done"), [("n\n", False), ("\n", False), ("y\n", True)])
def test_a_person_is_asked_on_a_terminal(place: Place, answer: str, is_done: bool) -> None:
    controller, terminal = pty.openpty()
    try:
        os.write(controller, answer.encode())
        ran = subprocess.run(
            [*CLAWMARK, "forget", CANARY],
            stdin=terminal,
            capture_output=True,
            text=True,
            env=place.environment({"TERM": "xterm"}),
            timeout=HANG_SECONDS,
            check=False,
        )
    finally:
        os.close(controller)
        os.close(terminal)
    assert ran.returncode == 0 and "It cannot be undone" in ran.stdout
    assert (traces(place.workspace, place.state) == []) is is_done
    assert ("nothing was forgotten" in ran.stderr) is not is_done


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("text", "--path", "MEMORY.md"),
        ("--path", "memory/none.md"),
        ("--lines", "MEMORY.md"),
        ("--session", "nobody"),
        ("--source", "nothing"),
        ("--since", "yesterday-ish"),
        ("--since", "2d"),
    ],
)
def test_bad_input_is_one_clear_sentence(place: Place, words: tuple[str, ...]) -> None:
    ran = place.run("forget", *words, "--yes")
    assert ran.code == 2
    assert says_one_clear_thing(ran)


def test_a_damaged_list_of_forgotten_texts_stops_no_note_and_is_reported(place: Place) -> None:
    assert place.run("forget", CANARY, "--yes").code == 0
    (file,) = place.state.glob("agents/*/tombstones.json")
    file.write_text("{")
    written = place.run("remember", "The heron nests by the pier")
    assert written.code == 0 and "cannot be read" in written.err
    refused = place.run("forget", "heron nests", "--yes")
    assert refused.code == 5 and says_one_clear_thing(refused)
    examined = place.run("doctor")
    assert examined.code == 1 and "list of forgotten texts" in examined.out


def test_a_long_plan_is_cut_and_fits_the_terminal(place: Place) -> None:
    entries = "".join(
        f"- The heron number {one} nests by the pier of the harbour in each long winter\n"
        for one in range(60)
    )
    place.write("memory/herons.md", f"# Herons\n\n{entries}")
    shown = place.run("forget", "nests by the pier", "--dry-run")
    lines = shown.out.splitlines()
    assert "memory files (60)" in lines and "  … and 50 more; --json lists all" in lines
    assert max(map(len, lines)) <= 80 and len(lines) < 40


def test_lines_that_end_before_they_begin_are_a_usage_error(place: Place) -> None:
    ran = place.run("forget", "--lines", "MEMORY.md#L4-L3", "--yes")
    assert ran.code == 2 and says_one_clear_thing(ran)


def agent_folder(place: Place) -> Path:
    (journal,) = place.state.rglob("journal.jsonl")
    return journal.parent


def test_a_file_in_place_of_the_history_is_reported_before_anything_is_changed(
    place: Place,
) -> None:
    place.run("remember", "the garage code is 4711")
    history = agent_folder(place) / "history.git"
    shutil.rmtree(history)
    history.write_text("not a folder")
    ran = place.run("forget", "garage code", "--yes")
    assert ran.code == 5 and says_one_clear_thing(ran)
    assert "doctor --fix" in ran.err
    assert not (agent_folder(place) / "forget.json").exists()
    assert any("4711" in one.read_text("utf-8") for one in place.workspace.rglob("*.md"))
    assert place.run("doctor", "--fix").code in (0, 1)
    assert place.run("forget", "garage code", "--yes").code == 0
    assert not any("4711" in one.read_text("utf-8") for one in place.workspace.rglob("*.md"))


def test_a_history_on_another_disk_is_rewritten_where_it_is(place: Place, tmp_path: Path) -> None:
    (folder,) = place.state.glob("agents/*/history.git")
    elsewhere = tmp_path / "elsewhere" / "versions"
    elsewhere.parent.mkdir()
    shutil.move(folder, elsewhere)
    folder.symlink_to(elsewhere)
    done = place.run("forget", CANARY, "--yes")
    assert done.code == 0 and "the history rewritten" in done.out.replace("\n", " ")
    assert traces(place.workspace, place.state, elsewhere.parent) == []
    assert folder.is_symlink() and place.run("history").code == 0


def test_a_history_that_is_damaged_after_the_plan_stops_nothing_and_is_reported(
    place: Place,
) -> None:
    place.run("remember", "the garage code is 4711")
    place.run("index")
    history = agent_folder(place) / "history.git"
    with Memory.open(place.workspace, state_dir=place.state, provider="none") as memory:
        plan = memory.plan_forget("garage code")
        shutil.rmtree(history)
        history.write_text("not a folder")
        report = memory.forget(plan)
    assert any("It was set aside as" in one for one in report.unreachable)
    assert not (agent_folder(place) / "forget.json").exists()
    assert not any("4711" in one.read_text("utf-8") for one in place.workspace.rglob("*.md"))


def test_a_state_folder_that_cannot_be_written_is_named_with_a_next_step(place: Place) -> None:
    place.run("remember", "the garage code is 4711")
    place.run("index")
    intent = agent_folder(place) / "forget.json.lock"
    intent.mkdir()
    ran = place.run("forget", "garage code", "--yes")
    assert ran.code == 3 and says_one_clear_thing(ran)
    assert "Check that" in ran.err, "it says what to do next"
