"""The log in the state folder: what ran and what failed, and never a memory or a key."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from commands import CLAWMARK, HANG_SECONDS, Place, new_place

from clawmark.config.keys import BY_NAME
from clawmark.system import log_file
from clawmark.system.log_file import KEPT, MAX_BYTES, LogFile, log_path

SECRET = "sk-proj-4TlKq0a9XcB7mNvR2yWzE5uJdH8sGfP1"
EVENT = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (info|warning|error) \d+ \S.*|    \S.*|      \S.*"
)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new_place(tmp_path)


def logged(place: Place) -> str:
    return Path(log_path(str(place.state))).read_text(encoding="utf-8")


def configure(place: Place, **memory: str) -> None:
    place.state.mkdir(exist_ok=True)
    (place.state / "clawmark.json").write_text(json.dumps({"memory": memory}), encoding="utf-8")


def test_a_command_is_logged_with_its_exit_code_in_a_private_file(place: Place) -> None:
    place.run("search", "tea", "--provider", "none")
    assert re.fullmatch(
        r"\S+ info \d+ clawmark search: exit code 0 after [\d,]+ ms\n", logged(place)
    )
    assert stat.S_IMODE(os.stat(log_path(str(place.state))).st_mode) == 0o600


def test_neither_memory_nor_questions_nor_keys_are_logged(place: Place) -> None:
    env = {"OPENAI_API_KEY": SECRET, "HTTPS_PROXY": "http://127.0.0.1:9"}
    place.run("remember", "The heron nests behind the boathouse")
    place.run("remember", "The heron nests behind the boathouse")  # refused as a duplicate
    place.run("search", "where does the heron nest?", "--since", "heronday")
    place.run("search", "where does the heron nest?", "--provider", "openai", env=env)
    place.run("index", env=env)
    place.run("get", "memory/heron.md")
    text = logged(place)
    assert "clawmark remember: exit code 4" in text and "clawmark search: exit code 2" in text
    for word in ("heron", "boathouse", "PostgreSQL", SECRET, SECRET[-12:]):
        assert word not in text
    assert all(EVENT.fullmatch(line) for line in text.splitlines())


def test_an_answer_without_the_configured_provider_is_logged(place: Place) -> None:
    place.run("search", "tea", "--provider", "openai", env={"OPENAI_API_KEY": None})
    assert re.search(r" warning \d+ search degraded: Set OPENAI_API_KEY", logged(place))


def test_an_unexpected_error_is_logged_with_its_frames_and_without_its_message(
    place: Place, tmp_path: Path
) -> None:
    place.state.mkdir()
    broken = (
        "import clawmark.cli.commands.recent as verb\n"
        "def fail(*_): raise ValueError('The heron nests behind the boathouse')\n"
        "verb.entry_lines = fail\n"
        "from clawmark.cli import main\n"
        "raise SystemExit(main(['recent']))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", broken],
        env=place.environment(),
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert ran.returncode == 3
    text = logged(place)
    assert " clawmark recent: exit code 3 " in text and "builtins.ValueError\n" in text
    assert re.search(r"clawmark/cli/commands/recent.py:\d+ in run\n", text)
    assert "heron" not in text


def test_warnings_of_the_library_are_logged_and_still_printed(place: Place) -> None:
    place.run("index")
    folder = next(place.state.glob("agents/*"))
    journal = folder / "journal.jsonl"
    journal.unlink(missing_ok=True)
    journal.mkdir()
    ran = place.run("remember", "Tea at noon")
    assert "The journal has no record of a write" in ran.err
    assert "warning" in logged(place) and "clawmark.journal: The journal has no" in logged(place)


def test_with_the_level_off_there_is_no_log(place: Place) -> None:
    configure(place, log="off")
    place.run("search", "tea", "--provider", "none")
    assert not (place.state / "logs").exists()
    assert "No log is written" in place.run("doctor").out


def test_with_the_level_error_a_command_that_succeeds_is_not_logged(place: Place) -> None:
    configure(place, log="error")
    place.run("search", "tea", "--provider", "none")
    assert not (place.state / "logs").exists()


def test_doctor_names_the_log_and_counts_what_it_holds(place: Place) -> None:
    place.state.mkdir()
    place.run("get", "../outside.md")
    said = place.run("doctor", "--json").json()["findings"]
    (found,) = [one["what"] for one in said if one["what"].startswith("The log is ")]
    assert found == f"The log is {log_path(str(place.state))}; errors: 0, warnings: 2."


def test_a_full_log_is_rotated_and_two_old_ones_are_kept(tmp_path: Path) -> None:
    log = LogFile(log_path(str(tmp_path)))
    for number in range(KEPT + 3):
        log.write("info", f"begin {number}")
        with open(log.path, "ab") as file:
            file.truncate(MAX_BYTES - 10)
    log.write("info", "the newest")
    names = sorted(file.name for file in Path(log.path).parent.iterdir())
    assert names == ["clawmark.log", "clawmark.log.1", "clawmark.log.2", "clawmark.log.lock"]
    assert Path(log.path).read_text(encoding="utf-8").endswith(" the newest\n")


def test_processes_that_fill_the_log_together_lose_no_event(tmp_path: Path) -> None:
    program = (
        "import sys; from clawmark.system.log_file import LogFile\n"
        f"log = LogFile({log_path(str(tmp_path))!r})\n"
        "for number in range(700): log.write('info', f'{sys.argv[1]} {number} ' + 'x' * 400)\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, name]) for name in "abcd"]
    assert [one.wait(HANG_SECONDS) for one in running] == [0, 0, 0, 0]
    lines = [
        line.split()[3:5]
        for file in Path(log_path(str(tmp_path))).parent.glob("clawmark.log*")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    assert len(lines) == 2800 and len({tuple(line) for line in lines}) == 2800


def test_a_log_that_cannot_be_written_changes_no_answer(place: Place) -> None:
    place.run("index")
    logs = place.state / "logs"
    for file in logs.iterdir():
        file.unlink()
    logs.rmdir()
    logs.write_text("not a folder", encoding="utf-8")
    ran = place.run("search", "tea", "--provider", "none")
    assert ran.code == 0 and "Tea with Ann" in ran.out


def test_a_search_that_logs_one_line_does_not_import_logging(place: Place) -> None:
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", *CLAWMARK[1:], "search", "tea", "--provider", "none"],
        env=place.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    imported = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
    assert "clawmark.system.log_file" in imported
    assert not {"logging", "clawmark.system.log_records"} & imported


def test_the_levels_of_the_setting_are_those_of_the_log() -> None:
    assert BY_NAME["memory.log"].choices == log_file.LEVELS
