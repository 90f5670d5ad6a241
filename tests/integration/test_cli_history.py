"""The history of a workspace through the command line: recording, diffs, restore, undo."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from commands import CLAWMARK, Place, new_place, says_one_clear_thing

from clawmark import Memory
from clawmark.composition import history_folder
from clawmark.history.history import History
from clawmark.model.errors import WorkspaceError, WriteConflict
from clawmark.model.provenance import Origin

AGENT = Origin("agent", "tool", "agent", session="agent:main:main")
LOG = "memory/2026-11-15.md"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new_place(tmp_path)


def opened(place: Place, *, background: bool = False) -> Memory:
    return Memory.open(
        place.workspace,
        state_dir=place.state,
        provider="none",
        overrides={"memory.review": "off"},
        background=background,
    )


def repository(place: Place) -> Path:
    with opened(place) as memory:
        return Path(history_folder(memory.places))


def versions(place: Place, *words: str) -> list[dict[str, Any]]:
    ran = place.run("history", "--json", *words)
    assert ran.code == 0, ran.err
    found = ran.json()["versions"]
    assert isinstance(found, list)
    return found


def write_as_agent(place: Place, path: str, text: str) -> None:
    with opened(place) as memory:
        memory.workspace.append(path, text, origin=AGENT)


# --- recording ------------------------------------------------------------------------------------


def test_an_index_run_records_a_version_and_a_second_one_adds_none(place: Place) -> None:
    assert place.run("index").code == 0
    assert place.run("index").code == 0
    (only,) = versions(place)
    assert [change["path"] for change in only["changes"]] == ["MEMORY.md", LOG]
    assert only["reason"] == "sync"


def test_what_remember_wrote_is_recorded_by_the_next_look_at_the_history(place: Place) -> None:
    place.run("index")
    assert place.run("remember", "Grete likes rye bread").code == 0
    newest, _ = versions(place)
    assert newest["writers"] == [{"actor": "user", "kind": "remember", "trust": "owner"}]


def test_what_a_search_has_indexed_is_recorded_by_the_next_index_run(place: Place) -> None:
    place.run("index")
    place.write(LOG, "# 2026-11-15\n\n- The heron is back.\n")
    assert place.run("search", "heron").code == 0
    assert place.run("index").code == 0
    with opened(place) as memory:
        newest = memory.history._history.newest
        assert newest is not None and newest.reason == "sync"
        assert memory.history.read(LOG, newest.id) == b"# 2026-11-15\n\n- The heron is back.\n"


@pytest.mark.parametrize(
    ("words", "unwanted"),
    [
        (("search", "billing"), ("dulwich", "clawmark.history", "clawmark.engine.versions")),
        (("remember", "A note of some length"), ("dulwich", "clawmark.history.repository")),
        (("index",), ("dulwich", "clawmark.history.repository")),
    ],
)
def test_commands_that_record_nothing_do_not_import_the_history(
    place: Place, words: tuple[str, ...], unwanted: tuple[str, ...]
) -> None:
    place.run("index")
    place.run("history")  # by now, files that had just been written are settled
    script = (
        "import sys\nfrom clawmark.cli import main\ncode = main(sys.argv[1:])\n"
        "print('\\n'.join(sorted(sys.modules)), file=sys.stderr)\nsys.exit(code)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True,
        text=True,
        check=True,
        env=place.environment(),
    )
    loaded = [name for name in ran.stderr.split() if name.startswith(unwanted)]
    assert loaded == []


def test_transcripts_and_added_folders_are_not_recorded(place: Place, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "ferry.md").write_text("The ferry leaves at nine.\n")
    assert place.run("add", str(notes)).code == 0
    place.run("index")
    (only,) = versions(place)
    assert len(only["changes"]) == 2


def test_a_folder_that_cannot_be_listed_is_not_recorded_as_removed(place: Place) -> None:
    place.run("index")
    kept = place.workspace / "memory"
    kept.rename(place.folder / "elsewhere")
    kept.symlink_to(place.folder / "elsewhere")  # links are never followed
    place.write("MEMORY.md", "# Facts\n\nNew.\n")
    assert place.run("index").code == 0
    newest = versions(place)[0]
    assert [change["path"] for change in newest["changes"]] == ["MEMORY.md"]


def test_a_process_with_a_background_worker_records_after_a_write(place: Place) -> None:
    with opened(place, background=True) as memory:
        memory.append("The heron is back")
        recording = memory._builtin._recording
        assert recording is not None
        assert recording.wait_for_recording(60)
        assert any("memory/" in change.path for change in next(_recorded(memory)).changes)


def _recorded(memory: Memory):  # type: ignore[no-untyped-def]
    return memory.history._history.versions()


def test_nothing_is_recorded_when_the_history_is_switched_off(place: Place) -> None:
    place.state.mkdir()
    (place.state / "clawmark.json").write_text('{"memory": {"history": {"enabled": false}}}')
    assert place.run("index").code == 0
    ran = place.run("history")
    assert ran.code == 0 and "memory.history.enabled is false" in ran.err
    assert not repository(place).exists()


def test_processes_that_record_at_once_all_succeed(place: Place) -> None:
    for number in range(50):
        place.write(f"memory/notes/{number}.md", f"- note {number}\n")
    running = [
        subprocess.Popen(
            [*CLAWMARK, *(("index",) if number % 2 else ("history", "--json"))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=place.environment(),
        )
        for number in range(6)
    ]
    for one in running:
        _, err = one.communicate(timeout=300)
        assert one.returncode == 0, err
    first = versions(place)[-1]
    assert len(first["changes"]) == 52
    git(repository(place), "fsck", "--strict")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True
    )
    return done.stdout


# --- a history that fails -------------------------------------------------------------------------


def damage(place: Place) -> None:
    for file in (repository(place) / "objects").rglob("*"):
        if file.is_file():
            file.chmod(0o600)
            file.write_bytes(b"rubbish")


def test_a_damaged_history_is_set_aside_by_the_next_sync_that_records(place: Place) -> None:
    place.run("index")
    damage(place)
    ran = place.run("history")
    assert ran.code == 5 and says_one_clear_thing(ran)
    place.write("MEMORY.md", "# Facts\n\nNew.\n")
    assert place.run("index").code == 0
    assert len(versions(place)) == 1, "a new history was begun"
    assert "Damaged histories that were set aside: 1" in place.run("doctor").out
    assert place.run("status", "--json").json()["events"]["historyFailures"]["count"] == 1


def test_doctor_sets_a_damaged_history_aside(place: Place) -> None:
    place.run("index")
    damage(place)
    ran = place.run("doctor")
    assert ran.code == 1 and "cannot be read" in ran.out
    place.run("doctor", "--fix")
    assert len(versions(place)) == 1


def test_a_history_that_cannot_be_written_fails_no_sync_and_no_undo(place: Place) -> None:
    write_as_agent(place, LOG, "- by the agent")
    folder = repository(place)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("a file in place of the folder")
    assert place.run("index").code == 0
    assert place.run("undo", "--yes").code == 0
    assert "by the agent" not in (place.workspace / LOG).read_text()


# --- the user's own repository --------------------------------------------------------------------


def test_the_users_own_repository_is_never_touched(place: Place) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
    git(place.workspace, "init", "-q")
    git(place.workspace, "add", ".")
    git(place.workspace, *identity, "commit", "-qm", "mine")
    before = folder_hash(place.workspace / ".git")
    write_as_agent(place, LOG, "- by the agent")
    for words in (("index",), ("history",), ("diff",), ("undo", "--yes"), ("doctor",)):
        assert place.run(*words).code == 0, words
    assert place.run("restore", f"{LOG}@{versions(place)[-1]['id']}", "--yes").code == 0
    assert folder_hash(place.workspace / ".git") == before


def folder_hash(folder: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        digest.update(str(file).encode())
        if file.is_file():
            digest.update(file.read_bytes())
    return digest.hexdigest()


def test_init_creates_no_repository(place: Place) -> None:
    assert place.run("init", str(place.folder / "new")).code == 0
    assert not (place.folder / "new" / ".git").exists()
    (place.folder / "mine" / ".git").mkdir(parents=True)
    assert place.run("init", str(place.folder / "mine")).code == 0
    assert os.listdir(place.folder / "mine" / ".git") == []


# --- history and diff -----------------------------------------------------------------------------


def test_the_history_of_a_file_lists_its_versions_with_counts_and_lines(place: Place) -> None:
    place.run("index")
    place.write("MEMORY.md", "# Facts\n\nWe chose SQLite.\n")
    ran = place.run("history", "MEMORY.md")
    newest, now, was, oldest = ran.out.splitlines()
    assert newest.split()[3:6] == ["changed", "+1", "-1"]
    assert oldest.split()[3:6] == ["added", "+3", "-0"]
    until = " ".join(newest.split()[1:3])
    assert now == '  now "We chose SQLite."'
    assert was.startswith('  was "We chose PostgreSQL') and was.endswith(f'" until {until}')
    assert "+We chose SQLite." in place.run("history", "MEMORY.md", "-p").out.splitlines()
    assert len(versions(place, "-n", "1")) == 1
    assert "no version of nosuch.md" in place.run("history", "nosuch.md").err


def test_the_history_of_a_file_says_what_replaced_what_within_80_columns(place: Place) -> None:
    long = "and it is moored at the long pier behind the office of the harbour master in the east"
    lines = [f"The ferry number {number} leaves at nine, {long}." for number in range(5)]
    place.write("MEMORY.md", "\n\n".join(lines) + "\n")
    place.run("index")
    place.write("MEMORY.md", "\n\n".join(lines).replace("nine", "ten") + "\n")
    ran = place.run("history", "MEMORY.md", "-n", "1")
    assert max(map(len, ran.out.splitlines())) <= 80
    assert [line.split()[0] for line in ran.out.splitlines()[1:]] == ["now", "was"] * 3 + ["…"]
    assert "… and 2 more replaced lines; -p shows them" in ran.out
    (version,) = versions(place, "MEMORY.md", "-n", "1")
    assert version["replaced"][0] == {"was": lines[0], "now": lines[0].replace("nine", "ten")}
    assert "now" not in place.run("history", "MEMORY.md", "-n", "1", "-p").out.split()


def test_a_diff_without_versions_shows_the_last_change(place: Place) -> None:
    place.run("index")
    place.write("MEMORY.md", "# Facts\n\nWe chose SQLite.\n")
    first = place.run("diff")
    assert "+We chose SQLite." in first.out.splitlines()
    assert "\x1b" not in first.out
    assert place.run("diff", "MEMORY.md").out == first.out, "it is recorded by now"
    assert "-We chose PostgreSQL" not in place.run("diff", LOG).out


def test_a_diff_between_versions_and_days(place: Place) -> None:
    place.run("index")
    place.write("MEMORY.md", "# Facts\n\nWe chose SQLite.\n")
    newest, oldest = versions(place)
    between = place.run("diff", str(oldest["id"])[:8], str(newest["id"])[:8])
    assert between.out == place.run("diff", "MEMORY.md", str(oldest["id"])).out != ""
    assert place.run("diff", "today").out == "", "today's last version is the newest one"
    tomorrow = (datetime.now() + timedelta(days=1)).date().isoformat()
    document = place.run("diff", "--json", str(oldest["id"]), tomorrow).json()
    assert document["to"] == newest["id"] and document["diff"] == between.out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("diff", "0000abcd"), 3, "is not a version"),
        (("diff", "1999-01-01"), 3, "no version from before 1999-01-02"),
        (("diff", "gestern"), 2, "neither a version nor a day"),
        (("diff", "MEMORY.md", "a" * 8, "b" * 8, "c" * 8), 2, "at most one path"),
        (("restore", "MEMORY.md"), 2, "PATH@VERSION"),
        (("restore", "MEMORY.md@HEAD~1", "--yes"), 2, "neither a version nor a day"),
        (("restore", "../x.md@today", "--yes"), 4, "outside the workspace"),
        (("restore", "nosuch.md@today", "--yes"), 4, "is not a memory file"),
        (("restore", "memory/nosuch.md@today", "--yes"), 3, "did not exist in version"),
        (("restore", "MEMORY.md@today"), 2, ""),
        (("undo", "--yes"), 3, "no write of an agent"),
        (("undo", "ffff", "--yes"), 3, "no write 'ffff'"),
    ],
)
def test_wrong_words_get_one_clear_sentence(
    place: Place, words: tuple[str, ...], code: int, message: str
) -> None:
    place.run("index")
    place.write("MEMORY.md", "# Facts\n\nNew.\n")
    if words == ("restore", "MEMORY.md@today"):
        words = ("restore", f"MEMORY.md@{versions(place)[-1]['id']}")
    ran = place.run(*words)
    assert ran.code == code, ran
    assert says_one_clear_thing(ran) and message in ran.err
    assert (place.workspace / "MEMORY.md").read_text() == "# Facts\n\nNew.\n"


# --- restore --------------------------------------------------------------------------------------


def test_a_restored_file_is_byte_identical_and_the_replaced_text_is_kept(place: Place) -> None:
    old = b"\xef\xbb\xbf# Facts\r\n\r\nold \xff no newline"
    (place.workspace / "MEMORY.md").write_bytes(old)
    place.run("index")
    (place.workspace / "MEMORY.md").write_bytes(b"new")
    version = str(versions(place)[-1]["id"])[:8]
    ran = place.run("restore", f"MEMORY.md@{version}", "--yes")
    assert ran.code == 0, ran.err
    assert (place.workspace / "MEMORY.md").read_bytes() == old
    newest, replaced, _ = versions(place, "MEMORY.md")
    # Versions have whole seconds: an edit of the same second may be named as well.
    assert {"actor": "user", "kind": "restore", "trust": "owner"} in newest["writers"]
    with opened(place) as memory:
        assert memory.history.read("MEMORY.md", str(replaced["id"])) == b"new"
        assert b"new" in memory.workspace.kept_texts("MEMORY.md")
    again = place.run("restore", f"MEMORY.md@{version}", "--yes")
    assert "already as in version" in again.out


def test_a_deleted_file_is_restored_by_its_day(place: Place) -> None:
    text = (place.workspace / LOG).read_bytes()
    with opened(place) as memory:
        history = History(history_folder(memory.places), clock=lambda: time.time() - 3600)
        files = memory.workspace.scan().files
        version = history.record(files, memory.workspace.read_bytes, "an hour ago")
        assert version is not None
    (place.workspace / LOG).unlink()
    when = datetime.fromtimestamp(version.seconds + 1).isoformat()
    document = place.run("restore", f"./{LOG}@{when}", "--yes", "--json").json()
    assert document["changed"] and document["diff"].startswith("--- /dev/null")
    assert (place.workspace / LOG).read_bytes() == text


def test_a_restore_of_a_file_that_changed_after_the_plan_is_refused(place: Place) -> None:
    place.run("index")
    place.write("MEMORY.md", "two\n")
    with opened(place) as memory:
        oldest = list(memory.history.versions("MEMORY.md"))[-1].version
        plan = memory.history.plan_restore("MEMORY.md", oldest.id)
        place.write("MEMORY.md", "three\n")
        with pytest.raises(WriteConflict):
            memory.history.apply(plan)
    assert (place.workspace / "MEMORY.md").read_text() == "three\n"


def test_restored_text_keeps_its_origin(place: Place) -> None:
    page = Origin("agent", "tool", "external", source="web page")
    with opened(place) as memory:
        memory.workspace.append(LOG, "- read on a page", origin=page)
        version = next(memory.history.versions()).version
        place.write(LOG, "nothing\n")
        memory.history.restore(LOG, version.id)
        from clawmark.composition import make_journal

        journal = make_journal(memory.places, memory.settings)
        assert journal.look_up("- read on a page").trust == "external"


# --- undo -----------------------------------------------------------------------------------------


def test_undo_takes_back_one_write_of_the_agent_after_the_other(place: Place) -> None:
    first = (place.workspace / LOG).read_bytes()
    write_as_agent(place, LOG, "- one")
    second = (place.workspace / LOG).read_bytes()
    write_as_agent(place, LOG, "- two")
    assert place.run("remember", "--to", "MEMORY.md", "A note of the user").code == 0
    assert place.run("undo", "--yes").code == 0
    assert (place.workspace / LOG).read_bytes() == second
    document = place.run("undo", "--yes", "--json").json()
    assert (document["kind"], document["actor"], document["changed"]) == ("tool", "agent", True)
    assert (place.workspace / LOG).read_bytes() == first
    assert place.run("undo", "--yes").code == 3
    assert "A note of the user" in (place.workspace / "MEMORY.md").read_text()
    assert place.run("undo", "--any", "--yes").code == 0
    assert "A note of the user" not in (place.workspace / "MEMORY.md").read_text()


def test_an_undone_write_can_be_restored(place: Place) -> None:
    write_as_agent(place, "memory/new.md", "- one")
    assert place.run("undo", "--yes").code == 0
    assert not (place.workspace / "memory/new.md").exists()
    before = versions(place, "memory/new.md")[1]
    assert place.run("restore", f"memory/new.md@{before['id']}", "--yes").code == 0
    assert (place.workspace / "memory/new.md").read_text() == "- one\n"


def test_undo_removes_an_entry_from_a_file_that_changed_since(place: Place) -> None:
    with opened(place) as memory:
        memory.workspace.append("memory/open.md", "- one", header="# Head\n\n", origin=AGENT)
    file = place.workspace / "memory/open.md"
    file.write_text("# New head\n\n- before\n- one\n- after")
    assert place.run("undo", "--yes").code == 0
    assert file.read_text() == "# New head\n\n- before\n- after"


def test_the_line_end_of_the_line_before_stays_when_something_follows(place: Place) -> None:
    place.write("memory/open.md", "no line end")
    write_as_agent(place, "memory/open.md", "- one")
    with opened(place) as memory:
        memory.workspace.append("memory/open.md", "- two")
    assert place.run("undo", "--yes").code == 0
    assert (place.workspace / "memory/open.md").read_text() == "no line end\n- two\n"


def test_undo_of_an_entry_that_was_edited_is_refused_with_the_difference(place: Place) -> None:
    place.run("index")
    write_as_agent(place, LOG, "- one")
    file = place.workspace / LOG
    file.write_text(file.read_text().replace("- one", "- one, edited"))
    before = file.read_bytes()
    ran = place.run("undo", "--yes")
    assert ran.code == 3 and "is not in the file any more" in ran.err
    assert "+- one, edited" in ran.out.splitlines()
    assert file.read_bytes() == before


def test_a_replaced_text_comes_back_while_the_file_is_unchanged(place: Place) -> None:
    with opened(place) as memory:
        current = memory.workspace.read_exact(LOG)
        assert current is not None
        memory.workspace.replace(LOG, "# By the agent\n", current.hash, origin=AGENT)
        plan = memory.history.plan_undo()
        assert plan.after is not None and plan.after.decode() == current.text
        place.write(LOG, "# By hand\n")
        with pytest.raises(WorkspaceError, match="has changed since"):
            memory.history.undo()
        place.write(LOG, "# By the agent\n")
        memory.history.undo()
    assert (place.workspace / LOG).read_text() == current.text


def test_undo_names_a_write_by_its_id(place: Place) -> None:
    write_as_agent(place, LOG, "- one")
    write_as_agent(place, LOG, "- two")
    with opened(place) as memory:
        first = next(memory.history._journal.records())
    assert place.run("undo", first.id, "--yes").code == 0
    text = (place.workspace / LOG).read_text()
    assert "- one" not in text and text.endswith("- two\n")
