"""`clawmark review` in its own process, also on a real terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
from pathlib import Path

import pytest
from commands import CLAWMARK, HANG_SECONDS, Place, new_place, says_one_clear_thing

from clawmark import Memory
from clawmark.agent.review.hunks import Because, Hunk, appended_hunk, make_hunks
from clawmark.model.provenance import Origin

PAGE = "# Facts\n\n- Billing runs on MySQL.\n- Ann prefers tea.\n"
NEW = "- Billing runs on PostgreSQL."
CHANGED = PAGE.replace("- Billing runs on MySQL.", NEW)
BY_AGENT = Origin(actor="agent", kind="curation", trust="agent", session="agent:main:main")
CTRL_C = "\x03"
ADDED = "- Bob is the plumber who repaired the boiler of the house in the winter of 2025 for free."


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = new_place(tmp_path)
    made.write("MEMORY.md", PAGE)
    return made


def propose(place: Place, *hunks: Hunk) -> None:
    given = hunks or (
        *make_hunks(
            "MEMORY.md",
            PAGE,
            CHANGED,
            lambda _: Because(
                "The billing system moved in November.", ("memory/2026-11-15.md#L3",)
            ),
        ),
        appended_hunk("MEMORY.md", ADDED, "He was mentioned three times."),
    )
    with Memory.open(place.workspace, state_dir=place.state, provider="none") as memory:
        memory.review.add(given, title="Curate MEMORY.md", origin=BY_AGENT)


def page(place: Place) -> str:
    return (place.workspace / "MEMORY.md").read_text(encoding="utf-8")


def test_nothing_waits_at_first(place: Place) -> None:
    ran = place.run("review")
    assert (ran.code, ran.out) == (0, "Nothing waits for review.\n")
    assert place.run("review", "--json").json() == {"proposals": []}
    assert "for review" not in place.run("status").out


def test_a_pipe_gets_a_list(place: Place) -> None:
    propose(place)
    ran = place.run("review")
    assert ran.code == 0
    head, line = ran.out.splitlines()
    assert head.split() == ["ID", "MADE", "CHANGES", "STATE", "TITLE"]
    assert line.startswith("p1 ") and line.endswith("2  pending  Curate MEMORY.md")
    (one,) = place.run("review", "list", "--json").json()["proposals"]
    assert (one["id"], one["state"], len(one["hunks"])) == ("p1", "pending", 2)


def test_status_counts_proposals_without_their_text(place: Place) -> None:
    propose(place)
    shown = place.run("status").out
    assert "1 proposal waits for review: `clawmark review`" in shown
    assert "PostgreSQL." not in shown
    assert place.run("status", "--json").json()["proposals"] == 1


def test_show_has_reason_citations_and_diff_within_80_columns(place: Place) -> None:
    propose(place)
    ran = place.run("review", "show", "p1", env={"COLUMNS": "80"})
    assert ran.code == 0
    assert "Reason  The billing system moved in November." in ran.out
    assert "Cites   memory/2026-11-15.md#L3" in ran.out
    assert f"-- Billing runs on MySQL.\n+{NEW}\n" in ran.out
    assert "Hunk 2 of 2" in ran.out and "+- Bob is the plumber" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80
    assert place.run("review", "show", "p1", "--json").json()["hunks"][0]["new"] == NEW


def test_accepting_one_hunk_leaves_the_other(place: Place) -> None:
    propose(place)
    ran = place.run("review", "accept", "p1", "--hunk", "1")
    assert ran.code == 0 and "Wrote 1 change to MEMORY.md." in ran.out
    assert "Still pending in p1: hunk 2" in ran.out
    assert page(place) == CHANGED
    done = place.run("review", "accept", "p1", "--json").json()
    assert done["state"] == "accepted" and page(place) == f"{CHANGED}{ADDED}\n"
    again = place.run("review", "accept", "p1")
    assert again.code == 2 and says_one_clear_thing(again)


def test_a_rejected_proposal_is_listed_with_all(place: Place) -> None:
    propose(place)
    ran = place.run("review", "reject", "p1", "--reason", "not true")
    assert ran.out == "Rejected 2 changes of p1; not proposed again.\n"
    assert page(place) == PAGE
    assert place.run("review", "list").out == "Nothing waits for review.\n"
    assert "rejected" in place.run("review", "list", "--all").out
    assert "Note    not true" in place.run("review", "show", "p1").out


def test_a_proposal_that_no_longer_applies_says_what_to_do(place: Place) -> None:
    propose(place)
    changed = PAGE.replace("MySQL", "Oracle")
    place.write("MEMORY.md", changed)
    ran = place.run("review", "accept", "p1")
    assert ran.code == 4 and says_one_clear_thing(ran)
    assert "Hunk 1 of p1 no longer applies to MEMORY.md" in ran.err
    assert "clawmark review edit p1 --hunk 1" in ran.err
    assert page(place) == changed


def editor(place: Place, text: str) -> dict[str, str]:
    """An editor that writes this text."""
    script = place.folder / "editor"
    script.write_text(f"#!/bin/sh\nprintf '%s' '{text}' > \"$1\"\n")
    script.chmod(0o755)
    return {"EDITOR": str(script), "VISUAL": ""}


def test_an_edited_hunk_is_written_as_edited(place: Place) -> None:
    propose(place)
    ran = place.run("review", "edit", "p1", "--hunk", "1", env=editor(place, "- Billing: SQLite."))
    assert ran.code == 0 and "is changed" in ran.out
    assert page(place) == PAGE
    place.run("review", "accept", "p1", "--hunk", "1")
    assert page(place) == PAGE.replace("- Billing runs on MySQL.", "- Billing: SQLite.")


def test_editing_a_hunk_that_no_longer_applies_adds_it_to_the_end(place: Place) -> None:
    propose(place)
    place.write("MEMORY.md", "# Facts\n\n- Something else.\n")
    ran = place.run("review", "edit", "p1", "--hunk", "1", env=editor(place, f"{NEW} Really."))
    assert ran.code == 0 and "added to the end" in ran.err
    assert place.run("review", "accept", "p1", "--hunk", "1").code == 0
    assert page(place) == f"# Facts\n\n- Something else.\n{NEW} Really.\n"


@pytest.mark.parametrize(
    "words",
    [
        ("show",),
        ("list", "p1"),
        ("accept", "p9"),
        ("accept", "p1", "--hunk", "7"),
        ("accept", "p1", "--hunk", "0"),
        ("accept", "p1", "--reason", "x"),
        ("show", "p1", "--hunk", "1"),
        ("show", "p1", "--all"),
        ("edit", "p1"),
        ("drop", "p1"),
        ("show", "../../x"),
    ],
)
def test_words_that_do_not_fit_together_are_a_usage_error(
    place: Place, words: tuple[str, ...]
) -> None:
    propose(place)
    ran = place.run("review", *words)
    assert ran.code == 2 and says_one_clear_thing(ran)
    assert page(place) == PAGE


def test_a_damaged_proposal_is_reported(place: Place) -> None:
    propose(place)
    (folder,) = place.state.glob("agents/*/proposals")
    (folder / "p7.json").write_text("{")
    ran = place.run("review", "list")
    assert ran.code == 0 and "p7.json is not a proposal" in ran.err
    assert "p1 " in ran.out


def test_hostile_text_is_escaped(place: Place) -> None:
    propose(place, appended_hunk("MEMORY.md", "- \x1b[2Jgone \u202etxt", "\x1b]0;x\x07"))
    out = place.run("review", "show", "p1").out
    assert "\x1b" not in out and "\u202e" not in out


# --- on a terminal ---


def on_terminal(place: Place, keys: str, more: dict[str, str] | None = None) -> tuple[int, str]:
    """Type each key when the question is there, Ctrl-C as a signal; return the exit code and what
    was shown."""
    ours, theirs = pty.openpty()
    environment = place.environment(
        {"TERM": "xterm", "COLORTERM": "", "COLUMNS": "80", **(more or {})}
    )
    running = subprocess.Popen(
        [*CLAWMARK, "review"], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    shown, asked = "", 0
    left = list(keys)
    try:
        while select.select([ours], [], [], 60)[0]:
            shown += os.read(ours, 65536).decode()
            while left and shown.count("[?]") > asked:
                asked += 1
                key = left.pop(0)
                if key == CTRL_C:
                    running.send_signal(signal.SIGINT)
                else:
                    os.write(ours, key.encode())
    except OSError:
        pass  # the process has ended
    finally:
        if running.poll() is None and not select.select([ours], [], [], 0)[0]:
            running.kill()  # it waits for a key that the test does not type
    code = running.wait(HANG_SECONDS)
    os.close(ours)
    return code, shown.replace("\r\n", "\n")


def test_one_key_accepts_and_one_rejects(place: Place) -> None:
    propose(place)
    code, shown = on_terminal(place, "ar")
    assert code == 0 and page(place) == CHANGED
    assert "\x1b[32m+- Billing runs on PostgreSQL.\x1b[0m" in shown
    assert "\x1b[31m-- Billing runs on MySQL.\x1b[0m" in shown
    assert "1 accepted, 1 rejected; nothing waits for review." in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert max(map(len, plain.split("\n"))) <= 80


def test_help_and_diff_ask_again_and_skipped_changes_stay(place: Place) -> None:
    propose(place)
    code, shown = on_terminal(place, "?dxsq")
    assert code == 0 and page(place) == PAGE
    assert "skip: decide another time" in shown
    assert "0 accepted, 0 rejected; 1 proposal waits for review." in shown


def test_an_edit_on_a_terminal_is_shown_and_then_accepted(place: Place) -> None:
    propose(place)
    code, shown = on_terminal(place, "eaq", editor(place, "- Billing: SQLite."))
    assert code == 0 and "+- Billing: SQLite." in shown
    assert "- Billing: SQLite.\n" in page(place)


def test_a_change_that_no_longer_applies_is_explained_and_asked_again(place: Place) -> None:
    propose(place)
    place.write("MEMORY.md", "# Facts\n")
    code, shown = on_terminal(place, "asaq")
    assert code == 0 and "no longer applies" in shown
    assert page(place) == f"# Facts\n{ADDED}\n"


def test_ctrl_d_quits_and_ctrl_c_interrupts(place: Place) -> None:
    propose(place)
    assert on_terminal(place, "\x04")[0] == 0
    assert on_terminal(place, CTRL_C)[0] == 130
    assert page(place) == PAGE


def test_arrows_and_other_special_keys_decide_nothing(place: Place) -> None:
    propose(place)
    for key in ("\x1b[A", "\x1b[D", "\x1bOA", "\x1b[3~", "\x1b"):
        assert typed_at_once(place, key + "q")[0] == 0
        assert page(place) == PAGE


def typed_at_once(place: Place, keys: str) -> tuple[int, str]:
    """Send all bytes of a special key together, as a terminal does."""
    ours, theirs = pty.openpty()
    environment = place.environment({"TERM": "xterm", "COLUMNS": "80"})
    running = subprocess.Popen(
        [*CLAWMARK, "review"], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    shown, left = "", [keys[:-1], keys[-1]]
    try:
        while select.select([ours], [], [], 60)[0]:
            shown += os.read(ours, 65536).decode()
            if left and shown.count("[?]") > 2 - len(left):
                os.write(ours, left.pop(0).encode())
    except OSError:
        pass  # the process has ended
    code = running.wait(HANG_SECONDS)
    os.close(ours)
    return code, shown


def test_a_damaged_proposal_has_the_exit_code_of_damage(place: Place) -> None:
    propose(place)
    (file,) = place.state.glob("agents/*/proposals/p*.json")
    file.write_text('{"id": "p1"')
    done = place.run("review", "accept", file.stem)
    assert done.code == 5 and "is damaged" in done.err
