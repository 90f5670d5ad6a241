"""`clawmark edit` with real editor processes: small scripts named by EDITOR."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import CLAWMARK, Place, new_place, says_one_clear_thing

LOG = "memory/2026-11-15.md"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new_place(tmp_path)


def editor(place: Place, body: str) -> dict[str, str | None]:
    """The environment with an editor that runs this Python code; `file` is what it edits."""
    script = place.folder / "editor.py"
    head = "import os, pathlib, signal, sys\nfile = pathlib.Path(sys.argv[-1])\n"
    script.write_text(head + body, encoding="utf-8")
    return {"EDITOR": f"'{sys.executable}' '{script}'", "VISUAL": None}


def copies(place: Place) -> list[Path]:
    """The edited copies that are kept in the state folder."""
    return [file for file in (place.state / "edits").rglob("*") if file.is_file()]


def text_of(place: Place, path: str = LOG) -> str:
    return (place.workspace / path).read_text(encoding="utf-8")


ADD_LINE = "file.write_text(file.read_text() + '- Added by hand.\\n')\n"


def test_an_edited_file_is_written_found_and_leaves_no_copy(place: Place) -> None:
    before = text_of(place)
    done = place.run("edit", LOG, env=editor(place, ADD_LINE))
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{LOG} is written: +1 -0 lines.\n"
    assert text_of(place) == before + "- Added by hand.\n"
    assert copies(place) == []
    found = place.run("search", "added by hand", "--json").json()
    assert found["results"][0]["path"] == LOG


def test_an_unchanged_file_is_not_written(place: Place) -> None:
    info = (place.workspace / LOG).stat()
    done = place.run("edit", LOG, env=editor(place, "file.write_bytes(file.read_bytes())\n"))
    assert (done.code, done.out) == (0, f"{LOG} is unchanged.\n")
    now = (place.workspace / LOG).stat()
    assert (now.st_mtime_ns, now.st_ino) == (info.st_mtime_ns, info.st_ino)
    assert copies(place) == []


def test_a_file_that_changed_meanwhile_keeps_its_text_and_the_edited_copy(place: Place) -> None:
    other = place.workspace / LOG
    body = f"{ADD_LINE}pathlib.Path({str(other)!r}).write_text('- From another program.\\n')\n"
    done = place.run("edit", LOG, env=editor(place, body))
    assert done.code == 4 and says_one_clear_thing(done)
    assert "has changed since it was read" in done.err
    assert text_of(place) == "- From another program.\n"
    (copy,) = copies(place)
    assert str(copy) in done.err and "- Added by hand." in copy.read_text(encoding="utf-8")
    assert copy.stat().st_mode & 0o077 == 0 and copy.parent.stat().st_mode & 0o077 == 0


def test_a_failing_editor_changes_nothing(place: Place) -> None:
    before = text_of(place)
    done = place.run("edit", LOG, env=editor(place, "sys.exit(1)\n"))
    assert done.code == 3 and says_one_clear_thing(done) and "exit code 1" in done.err
    assert text_of(place) == before and copies(place) == []


def test_what_was_typed_into_a_failing_editor_is_kept(place: Place) -> None:
    before = text_of(place)
    done = place.run("edit", LOG, env=editor(place, f"{ADD_LINE}sys.exit(1)\n"))
    assert done.code == 3 and says_one_clear_thing(done)
    assert text_of(place) == before
    (copy,) = copies(place)
    assert str(copy) in done.err and copy.read_text(encoding="utf-8").endswith("by hand.\n")


def test_a_killed_editor_changes_nothing_and_its_copy_is_kept(place: Place) -> None:
    before = text_of(place)
    body = f"{ADD_LINE}os.kill(os.getpid(), signal.SIGKILL)\n"
    done = place.run("edit", LOG, env=editor(place, body))
    assert done.code == 3 and says_one_clear_thing(done) and "signal 9" in done.err
    assert text_of(place) == before
    assert len(copies(place)) == 1


def test_a_deleted_copy_changes_nothing(place: Place) -> None:
    before = text_of(place)
    done = place.run("edit", LOG, env=editor(place, "file.unlink()\n"))
    assert done.code == 3 and says_one_clear_thing(done)
    assert text_of(place) == before


def test_a_new_file_is_created(place: Place) -> None:
    body = "assert not file.read_bytes()\nfile.write_text('# Ferry\\n')\n"
    done = place.run("edit", "memory/projects/ferry.md", env=editor(place, body))
    assert done.code == 0
    assert text_of(place, "memory/projects/ferry.md") == "# Ferry\n"


def test_a_new_file_that_stays_empty_is_not_created(place: Place) -> None:
    done = place.run("edit", "memory/new.md", env=editor(place, ""))
    assert done.code == 0 and "unchanged" in done.out
    assert not (place.workspace / "memory/new.md").exists()


def test_an_emptied_file_is_written_with_force_only(place: Place) -> None:
    env = editor(place, "file.write_text('')\n")
    refused = place.run("edit", LOG, env=env)
    assert refused.code == 3 and says_one_clear_thing(refused) and text_of(place)
    assert place.run("edit", "-f", LOG, env=env).code == 0
    assert text_of(place) == ""


def test_most_lines_may_be_dropped_by_hand(place: Place) -> None:
    place.write("memory/long.md", "".join(f"- line {number}\n" for number in range(50)))
    done = place.run("edit", "memory/long.md", env=editor(place, "file.write_text('- one\\n')\n"))
    assert (done.code, done.out) == (0, "memory/long.md is written: +1 -50 lines.\n")


def test_text_that_is_not_utf8_is_not_written(place: Place) -> None:
    before = text_of(place)
    done = place.run("edit", LOG, env=editor(place, "file.write_bytes(b'caf\\xe9')\n"))
    assert done.code == 3 and says_one_clear_thing(done) and "UTF-8" in done.err
    assert text_of(place) == before and len(copies(place)) == 1


def test_line_ends_and_byte_order_marks_reach_the_file_as_they_are(place: Place) -> None:
    raw = b"\xef\xbb\xbf- one\r\n- two\r\n"
    (place.workspace / "memory/dos.md").write_bytes(raw)
    body = "file.write_bytes(file.read_bytes() + b'- three\\r\\n')\n"
    assert place.run("edit", "memory/dos.md", env=editor(place, body)).code == 0
    assert (place.workspace / "memory/dos.md").read_bytes() == raw + b"- three\r\n"


@pytest.mark.parametrize("path", ["../outside.md", "/etc/passwd", "notes.txt", ".clawmark/x.md"])
def test_only_memory_files_are_edited(place: Place, path: str) -> None:
    (place.folder / "outside.md").write_text("outside", encoding="utf-8")
    marker = place.folder / "started"
    done = place.run("edit", path, env=editor(place, f"open({str(marker)!r}, 'w')\n"))
    assert done.code == 4 and says_one_clear_thing(done)
    assert not marker.exists()


def test_a_link_out_of_the_workspace_is_not_edited(place: Place) -> None:
    (place.folder / "outside.md").write_text("outside", encoding="utf-8")
    (place.workspace / "memory/link.md").symlink_to(place.folder / "outside.md")
    done = place.run("edit", "memory/link.md", env=editor(place, ADD_LINE))
    assert done.code == 4 and says_one_clear_thing(done)
    assert (place.folder / "outside.md").read_text(encoding="utf-8") == "outside"


def test_without_an_editor_one_sentence_says_what_to_set(place: Place) -> None:
    done = place.run("edit", LOG, env={"EDITOR": None, "VISUAL": None})
    assert done.code == 2 and says_one_clear_thing(done)
    assert "neither VISUAL nor EDITOR is set" in done.err and "export EDITOR=" in done.err


def test_an_editor_that_does_not_exist_is_named(place: Place) -> None:
    done = place.run("edit", LOG, env={"EDITOR": "/nowhere/ed --wait", "VISUAL": None})
    assert done.code == 3 and says_one_clear_thing(done) and "'/nowhere/ed'" in done.err
    assert copies(place) == []


def test_visual_wins_over_editor(place: Place) -> None:
    env = {**editor(place, ADD_LINE), "EDITOR": "false"}
    env["VISUAL"] = editor(place, ADD_LINE)["EDITOR"]
    assert place.run("edit", LOG, env=env).code == 0


def test_a_citation_opens_known_editors_at_its_line(place: Place) -> None:
    seen = place.folder / "arguments"
    nano = place.folder / "nano"
    nano.write_text(f'#!/bin/sh\necho "$@" > {seen}\n', encoding="utf-8")
    nano.chmod(0o755)
    done = place.run("edit", f"{LOG}#L4", env={"EDITOR": str(nano), "VISUAL": None})
    assert done.code == 0
    first, path = seen.read_text(encoding="utf-8").split()
    assert first == "+4" and Path(path).name == Path(LOG).name


def test_json_has_the_outcome_and_nothing_the_editor_prints(place: Place) -> None:
    done = place.run("edit", LOG, "-j", env=editor(place, f"print('hello')\n{ADD_LINE}"))
    assert done.json() == {"path": LOG, "changed": True, "addedLines": 1, "removedLines": 0}
    assert done.err == "hello\n"


def test_an_edit_ended_by_a_signal_keeps_the_copy(place: Place) -> None:
    """The editor opens a pipe when it is ready; then the command is ended, not the editor."""
    pipe = place.folder / "pipe"
    os.mkfifo(pipe)
    body = f"{ADD_LINE}pathlib.Path({str(pipe)!r}).write_text('x')\nsys.stdin.read()\n"
    with subprocess.Popen(
        [*CLAWMARK, "edit", LOG],
        env=place.environment(editor(place, body)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert pipe.read_text(encoding="utf-8") == "x"
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    assert "- Added by hand." not in text_of(place)
    assert len(copies(place)) == 1
