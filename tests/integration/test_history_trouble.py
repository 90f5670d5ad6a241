"""A full disk and a damaged history are described in plain words, without a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Place, new_place
from test_cli_history import LOG, damage, repository, versions, write_as_agent


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new_place(tmp_path)


@pytest.mark.parametrize("verb", [("history",), ("restore", f"{LOG}@7d"), ("undo", "--yes")])
def test_a_disk_that_takes_no_more_bytes_shows_no_traceback(
    place: Place, verb: tuple[str, ...]
) -> None:
    place.run("index")
    write_as_agent(place, LOG, "- by the agent")
    script = (
        "import resource, signal, sys\n"
        "from clawmark.cli import main\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))\n"
        "sys.exit(main())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, "-w", str(place.workspace), *verb],
        env=os.environ | {"CLAWMARK_STATE_DIR": str(place.state)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in ran.stderr and "Exception ignored" not in ran.stderr
    assert "File too large" in ran.stderr, "the disk is named"
    place.run("index")
    assert len(versions(place)) == 2, "the next run records"


def test_a_damaged_history_is_described_without_the_words_of_a_library(place: Place) -> None:
    place.run("index")
    damage(place)
    said = place.run("history").err + place.run("doctor").out
    assert "is damaged" in said
    assert not any(word in said for word in ("Error", "dulwich", "Errno", "zlib", "header"))


def test_versions_are_listed_when_the_present_files_cannot_be_recorded(place: Place) -> None:
    place.run("index")
    place.write("MEMORY.md", "# Facts\n\nNot recorded.\n")
    lock = repository(place).with_name("history.git.lock")
    lock.unlink(missing_ok=True)
    lock.mkdir()
    ran = place.run("history")
    assert ran.code == 0 and "MEMORY.md" in ran.out
    assert "The latest changes are not in the history" in ran.err


@pytest.mark.parametrize("line", ["not JSON", '{"id":"a","time":"soon"}', ""])
def test_a_damaged_journal_stops_neither_history_nor_undo(place: Place, line: str) -> None:
    place.run("index")
    write_as_agent(place, LOG, "- by the agent")
    record = (
        '{"id":"b","time":"no time","actor":"agent","kind":"tool","trust":"agent",'
        f'"path":"{LOG}","entries":[],"done":true}}'
    )
    with journal_path(place).open("a", encoding="utf-8") as file:
        file.write(f"{record}\n{line}\n")
    assert len(versions(place)) == 2
    assert place.run("undo", "--yes").code == 0


def test_a_journal_that_cannot_be_read_hides_who_wrote_a_version_and_no_version(
    place: Place,
) -> None:
    place.run("index")
    write_as_agent(place, LOG, "- by the agent")
    assert len(versions(place)) == 2
    journal_path(place).unlink()
    journal_path(place).mkdir()
    ran = place.run("history")
    assert ran.code == 0 and LOG in ran.out
    assert "journal" in ran.err
    assert place.run("history", f"{LOG}#L1").code == 0


def journal_path(place: Place) -> Path:
    return repository(place).with_name("journal.jsonl")
