"""What people see in a terminal of 80 columns, compared with captures that were looked at.

The captures in `captures/` show colour codes as `{1}`. `UPDATE_CAPTURES=1` writes them again."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import CLAWMARK, HANG_SECONDS, Place, new_place

from clawmark.cli.output import FIXED_COLOURS

CAPTURES = Path(__file__).with_name("captures")
WIDTH = 80
COLOURS = {"0", "1", "2", *FIXED_COLOURS.values()}
"""Bold, dim, and colours that read well on dark and on light."""
COMMANDS = {
    "search": ("search", "who chose PostgreSQL for billing?", "--provider", "none"),
    "search-nothing": ("search", "submarine", "--provider", "none"),
    "status": ("status",),
    "doctor": ("doctor",),
    "sessions": ("sessions",),
    "recent": ("recent",),
    "uninstall": ("uninstall", "--dry-run"),
}
_CODE = re.compile("\x1b\\[([0-9;]*)m")


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """A small memory in a folder whose path is always equally long, since lines are folded."""
    folder = Path(tempfile.mkdtemp(prefix="clawmark-", dir="/tmp"))
    made = new_place(folder)
    settings = '{ "memorySearch": { "provider": "none" } }'
    made.state.mkdir()
    (made.state / "clawmark.json").write_text(settings, encoding="utf-8")
    made.write(
        "memory/2026-11-14.md",
        "# 2026-11-14\n\n- 09:10 Ann from the harbour office called about the new berth contract; "
        "she wants the signed copy before Friday.\n",
    )
    for file in made.workspace.rglob("*.md"):
        os.utime(file, (1_794_700_000, 1_794_700_000))
    sessions = made.state / "agents" / "main" / "sessions"
    sessions.mkdir(parents=True)
    (sessions / "0f3c2a8e-11aa-4f0e-9d7a-6f1f0c2b7a55.jsonl").write_text(
        '{"type":"message","timestamp":"2026-11-15T10:00:01Z",'
        '"message":{"role":"user","content":"Which database was it?"}}\n',
        encoding="utf-8",
    )
    made.run("index")
    yield made
    shutil.rmtree(folder)


def in_terminal(place: Place, words: tuple[str, ...], **more: str) -> str:
    """Run a command in a real terminal of 80 columns; return everything that it printed."""
    env = place.environment({"TERM": "xterm-256color", "TZ": "UTC", **more})
    env.pop("COLUMNS", None)
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH, 0, 0))
    running = subprocess.Popen(
        [*CLAWMARK, *words], stdin=slave, stdout=slave, stderr=slave, env=env, cwd=place.folder
    )
    os.close(slave)
    said, end = b"", time.monotonic() + HANG_SECONDS
    while time.monotonic() < end and select.select([master], [], [], HANG_SECONDS)[0]:
        try:
            read = os.read(master, 65536)
        except OSError:  # Linux reports the end of a terminal as an error
            break
        if not read:
            break
        said += read
    os.close(master)
    running.wait(HANG_SECONDS)
    return said.decode("utf-8").replace("\r\n", "\n")


def stable(text: str, place: Place) -> str:
    """Replace what differs from run to run."""
    text = text.replace(str(place.folder), "/tmp/clawmark-12345678")
    text = re.sub(r"\b\d[\d.,]* (ms|s)\b", "N ms", text)
    text = re.sub(r"\b\d[\d.,]* (B|KB|MB)\b", "N KB", text)
    text = re.sub(r"workspace-[0-9a-f]{8}", "workspace-12345678", text)
    text = re.sub(r"^(\S*SQLite\S* +).*", r"\1N", text, flags=re.M)
    text = re.sub(r"^\S*Last sync.*\n(?: {4,}.*\n)?", "", text, flags=re.M)
    return _CODE.sub(lambda found: "{" + found[1] + "}", text)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_looks_as_it_was_looked_at(name: str, place: Place) -> None:
    shown = stable(in_terminal(place, COMMANDS[name]), place)
    capture = CAPTURES / f"{name}.txt"
    if os.environ.get("UPDATE_CAPTURES"):
        capture.write_text(shown, encoding="utf-8")
    assert shown == capture.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_fits_80_columns_and_needs_no_colours(name: str, place: Place) -> None:
    coloured = in_terminal(place, COMMANDS[name])
    plain = in_terminal(place, COMMANDS[name], NO_COLOR="1")
    assert set(_CODE.findall(coloured)) <= COLOURS
    assert "\x1b" not in plain
    assert stable(plain, place) == stable(_CODE.sub("", coloured), place)
    words = [line for line in plain.split("\n") if len(line) > WIDTH and " " in line.strip()]
    assert words == []


def test_indexing_shows_a_bar_with_rate_and_removes_it(place: Place) -> None:
    for number in range(400):
        place.write(f"memory/more/{number:03}.md", f"# Note {number}\n\n- The heron is back.\n")
    said = in_terminal(place, ("index",))
    drawn = re.findall(r"\r\x1b\[2K([^\r\n]*)", said)
    # The other tests of this file share the workspace and may have left more files to index.
    assert any(re.search(r" (4\d\d)/\1\b", _CODE.sub("", line)) for line in drawn)
    assert not re.search(r"\d/\d", drawn[-1])


def test_consolidating_shows_how_many_logs_are_read(place: Place) -> None:
    said = in_terminal(place, ("consolidate", "--dry-run", "--no-model"))
    assert re.search(r"memory  .*\d/\d", _CODE.sub("", said))
